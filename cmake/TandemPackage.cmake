# Packaging: filled by deploy/debian.
