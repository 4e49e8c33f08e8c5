// Strict CBOR (RFC 8949) for bytes that strangers send, on libcbor's streaming decoder. Accepts integers, byte and text
// strings, arrays, maps with text keys, booleans and null, all of definite length. Refuses everything else: indefinite
// lengths, tags, floats, bytes behind the end, a key twice, too deep, too many items, lengths that the input does not
// hold.
//
// Items are views into the input, which must outlive the document. Nothing is allocated by a length that the input
// claims, and no depth of nesting costs stack.
#pragma once

#include "tandem/core/base64.hpp"
#include "tandem/core/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tandem::protocol {

struct CborLimits {
  std::size_t max_bytes = 64 * 1024;
  std::size_t max_depth = 8;     // containers within containers
  std::size_t max_items = 1024;  // of any kind, keys included
};

class CborDocument {
 public:
  enum class Kind : std::uint8_t { unsigned_integer, negative_integer, bytes, text, array, map, boolean, null };

  // One item; the items of an array or map (key, value, key, ...) follow it.
  struct Item {
    Kind kind = Kind::null;
    std::uint64_t number = 0;  // unsigned: the value; negative: -1 - value; boolean: 0 or 1; array and map: entries
    ByteView data;             // of strings
    std::size_t end = 0;       // index behind the last item inside
  };

  // Errors: too_large (bytes or items), too_deep, duplicate_key, malformed (cut short, a length past the end, trailing
  // bytes), unsupported (indefinite lengths, tags, floats, keys that are not text).
  [[nodiscard]] static Result<CborDocument> parse(ByteView input, CborLimits limits = {});

  [[nodiscard]] const Item& root() const noexcept { return items_.front(); }

  // The value of a key; null where `map` is no map, has no such key, or the value is of another kind.
  [[nodiscard]] const Item* find(const Item& map, std::string_view key, Kind kind) const noexcept;
  // The entries of an array; empty for anything else.
  [[nodiscard]] std::vector<const Item*> entries(const Item& array) const;

 private:
  CborDocument() = default;
  std::vector<Item> items_;  // in the order of the input; never empty
};

}  // namespace tandem::protocol
