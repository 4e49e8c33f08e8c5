#include "tandem/protocol/cbor_reader.hpp"

#include <algorithm>
#include <utility>

#include <cbor.h>

namespace tandem::protocol {

namespace {

using Item = CborDocument::Item;
using Kind = CborDocument::Kind;

// What one call of the streaming decoder found.
struct Found {
  Item item;
  bool refused = false;  // an item of a kind that is not accepted

  void number(Kind kind, std::uint64_t value) noexcept {
    item.kind = kind;
    item.number = value;
  }
  void string(Kind kind, cbor_data data, std::size_t size) noexcept {
    item.kind = kind;
    item.data = {data, size};
  }
};

Found& found(void* context) noexcept { return *static_cast<Found*>(context); }

void refuse(void* context) { found(context).refused = true; }

template <Kind kind, class Int>
void on_number(void* context, Int value) {
  found(context).number(kind, value);
}

template <Kind kind>
void on_string(void* context, cbor_data data, std::size_t size) {
  found(context).string(kind, data, size);
}

template <Kind kind>
void on_container(void* context, std::size_t entries) {
  found(context).number(kind, entries);
}

cbor_callbacks make_callbacks() {
  cbor_callbacks c{};
  c.uint8 = on_number<Kind::unsigned_integer, std::uint8_t>;
  c.uint16 = on_number<Kind::unsigned_integer, std::uint16_t>;
  c.uint32 = on_number<Kind::unsigned_integer, std::uint32_t>;
  c.uint64 = on_number<Kind::unsigned_integer, std::uint64_t>;
  c.negint8 = on_number<Kind::negative_integer, std::uint8_t>;
  c.negint16 = on_number<Kind::negative_integer, std::uint16_t>;
  c.negint32 = on_number<Kind::negative_integer, std::uint32_t>;
  c.negint64 = on_number<Kind::negative_integer, std::uint64_t>;
  c.byte_string = on_string<Kind::bytes>;
  c.string = on_string<Kind::text>;
  c.array_start = on_container<Kind::array>;
  c.map_start = on_container<Kind::map>;
  c.boolean = [](void* context, bool value) { found(context).number(Kind::boolean, value ? 1 : 0); };
  c.null = [](void* context) { found(context).number(Kind::null, 0); };
  c.undefined = refuse;
  c.indef_break = refuse;
  c.byte_string_start = refuse;
  c.string_start = refuse;
  c.indef_array_start = refuse;
  c.indef_map_start = refuse;
  c.tag = [](void* context, std::uint64_t) { refuse(context); };
  c.float2 = [](void* context, float) { refuse(context); };
  c.float4 = [](void* context, float) { refuse(context); };
  c.float8 = [](void* context, double) { refuse(context); };
  return c;
}

std::string_view text_of(const Item& item) noexcept {
  return {reinterpret_cast<const char*>(item.data.data()), item.data.size()};
}

// A container that still waits for items.
struct Open {
  std::size_t index;        // of its item
  std::uint64_t remaining;  // items, keys and values counted apart
  std::vector<std::string_view> keys;
};

// The key that comes next in the innermost map, or no key is due.
bool key_is_due(const Open& open, const std::vector<Item>& items) noexcept {
  return items[open.index].kind == Kind::map && open.remaining % 2 == 0;
}

Result<std::size_t> read_item(ByteView input, Found& into) {
  static const cbor_callbacks callbacks = make_callbacks();
  const cbor_decoder_result step = cbor_stream_decode(input.data(), input.size(), &callbacks, &into);
  if (step.status != CBOR_DECODER_FINISHED) return Error::malformed;
  if (into.refused) return Error::unsupported;
  if (step.read == 0 || step.read > input.size()) return Error::malformed;
  return step.read;
}

}  // namespace

Result<CborDocument> CborDocument::parse(ByteView input, CborLimits limits) {
  if (input.size() > limits.max_bytes) return Error::too_large;
  CborDocument document;
  std::vector<Item>& items = document.items_;
  std::vector<Open> open;
  std::size_t at = 0;
  do {
    Found next;
    const auto read = read_item(input.subspan(at), next);
    if (!read) return read.error();
    at += *read;
    if (items.size() == limits.max_items) return Error::too_large;

    if (!open.empty()) {
      if (key_is_due(open.back(), items)) {
        if (next.item.kind != Kind::text) return Error::unsupported;
        auto& keys = open.back().keys;
        if (std::find(keys.begin(), keys.end(), text_of(next.item)) != keys.end()) return Error::duplicate_key;
        keys.push_back(text_of(next.item));
      }
      --open.back().remaining;
    }

    const std::size_t index = items.size();
    const bool container = next.item.kind == Kind::array || next.item.kind == Kind::map;
    const std::uint64_t per_entry = next.item.kind == Kind::map ? 2 : 1;
    next.item.end = index + 1;
    items.push_back(next.item);
    if (container) {
      // Every item takes a byte at least, so a count that the rest cannot hold is a lie: nothing is read on its word.
      if (next.item.number > (input.size() - at) / per_entry) return Error::malformed;
      if (open.size() == limits.max_depth) return Error::too_deep;
      open.push_back({index, next.item.number * per_entry, {}});
    }
    while (!open.empty() && open.back().remaining == 0) {
      items[open.back().index].end = items.size();
      open.pop_back();
    }
  } while (!open.empty());
  if (at != input.size()) return Error::malformed;
  return document;
}

const CborDocument::Item* CborDocument::find(const Item& map, std::string_view key, Kind kind) const noexcept {
  if (map.kind != Kind::map) return nullptr;
  const auto first = static_cast<std::size_t>(&map - items_.data()) + 1;
  for (std::size_t i = first; i < map.end; i = items_[i + 1].end) {
    if (text_of(items_[i]) == key) return items_[i + 1].kind == kind ? &items_[i + 1] : nullptr;
  }
  return nullptr;
}

std::vector<const CborDocument::Item*> CborDocument::entries(const Item& array) const {
  std::vector<const Item*> out;
  if (array.kind != Kind::array) return out;
  for (std::size_t i = static_cast<std::size_t>(&array - items_.data()) + 1; i < array.end; i = items_[i].end) {
    out.push_back(&items_[i]);
  }
  return out;
}

}  // namespace tandem::protocol
