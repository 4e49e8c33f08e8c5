// CBOR from strangers: whatever is accepted holds together, and says what it says within the input.
#include "tandem/protocol/cbor_reader.hpp"

#include <cstdint>
#include <cstdlib>

namespace {

using namespace tandem;
using protocol::CborDocument;

void must(bool good) {
  if (!good) std::abort();
}

// Every item ends where the next begins, strings lie inside the input, maps have as many values as keys.
void walk(const CborDocument& document, const CborDocument::Item& item, ByteView input, std::size_t depth) {
  must(depth <= 8);
  using Kind = CborDocument::Kind;
  if (item.kind == Kind::bytes || item.kind == Kind::text) {
    must(item.data.data() >= input.data() && item.data.data() + item.data.size() <= input.data() + input.size());
  }
  const auto entries = document.entries(item);
  must(entries.size() == (item.kind == Kind::array ? item.number : 0));
  for (const auto* entry : entries) walk(document, *entry, input, depth + 1);
  for (const char* key : {"fmt", "attStmt", "x5c", "authData", "signature", ""}) {
    for (const Kind kind : {Kind::bytes, Kind::text, Kind::map, Kind::array, Kind::null}) {
      const auto* found = document.find(item, key, kind);
      if (found == nullptr) continue;
      must(item.kind == Kind::map && found->kind == kind);
      walk(document, *found, input, depth + 1);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView input(data, size);
  const auto document = CborDocument::parse(input);
  if (!document) return 0;
  must(document->root().end >= 1);
  walk(*document, document->root(), input, 0);
  // Nothing accepted is a beginning of something else accepted, nor goes on.
  must(!CborDocument::parse(input.first(size - 1)));
  return 0;
}
