// The minting of test attestations, for this room's tests as well.
#include "unit/protocol/attest_mint.cpp"
