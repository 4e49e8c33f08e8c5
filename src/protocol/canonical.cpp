#include "tandem/protocol/canonical.hpp"

#include <cassert>
#include <cstdint>
#include <limits>

namespace tandem {
namespace {

void append(Bytes& out, ByteView field) {
  assert(field.size() <= std::numeric_limits<std::uint32_t>::max());
  const auto n = static_cast<std::uint32_t>(field.size());
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(n >> shift));
  out.insert(out.end(), field.begin(), field.end());
}

}  // namespace

Bytes canonical(std::string_view domain, std::span<const ByteView> fields) {
  std::size_t size = 4 + domain.size();
  for (const ByteView f : fields) size += 4 + f.size();
  Bytes out;
  out.reserve(size);
  append(out, bytes_of(domain));
  for (const ByteView f : fields) append(out, f);
  return out;
}

}  // namespace tandem
