#include "tandem/core/json.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace tandem {
namespace {

// Feeds the parser and counts, so that an event knows how far the text has been read.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  std::size_t* read = nullptr;

  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    ++at;
    if (read != nullptr) ++*read;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at == b.at; }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return a.at != b.at; }
};

// Builds the value as nlohmann's own DOM parser does, refusing depth and duplicate keys on the way. Returning false
// stops the parse at once, so a hostile text costs no more than the bytes up to its first fault.
class Builder {
 public:
  Builder(std::string_view text, std::size_t max_depth, const std::size_t* read, JsonLines* lines)
      : text_(text), max_depth_(max_depth), read_(read), lines_(lines) {}

  bool null() { return put(Json(nullptr)); }
  bool boolean(bool v) { return put(Json(v)); }
  bool number_integer(std::int64_t v) { return put(Json(v)); }
  bool number_unsigned(std::uint64_t v) { return put(Json(v)); }
  bool number_float(double v, const std::string&) { return put(Json(v)); }
  bool string(std::string& v) { return put(Json(std::move(v))); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& k) {
    Level& level = levels_.back();
    level.key = k;
    if (lines_ != nullptr) lines_->emplace(path(), line_at(*read_));
    if (!level.keys.insert(k).second) {
      fault.error = Error::duplicate_key;
      fault.what = "duplicate key \"" + path() + "\"";
      return at(*read_);
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception&) {
    if (fault.error == Error::too_deep) return false;
    fault.error = Error::malformed;
    std::size_t i = std::min(position > 0 ? position - 1 : 0, text_.size());
    const bool closes = i < text_.size() && (text_[i] == '}' || text_[i] == ']');
    std::size_t before = i;
    while (before > 0 && std::string_view(" \t\r\n").find(text_[before - 1]) != std::string_view::npos) --before;
    if (closes && before > 0 && text_[before - 1] == ',') {
      fault.what = std::string("a comma before ") + text_[i];
      i = before - 1;
    } else if (i >= text_.size()) {
      fault.what = "the text ends too early";
    } else {
      fault.what = "unexpected " + quoted(token, text_[i]);
    }
    return at(i);
  }

  // The value, once the parse succeeded.
  Json take() { return std::move(root_); }

  JsonFault fault;

 private:
  struct Level {
    Json* value;
    std::set<std::string> keys;
    std::string key;
  };

  bool put(Json&& value) { return place(std::move(value)) != nullptr; }

  Json* place(Json&& value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      if (lines_ != nullptr) lines_->emplace(path(), line_at(*read_));
      return &level.value->back();
    }
    return &((*level.value)[level.key] = std::move(value));
  }

  bool open(Json&& value) {
    if (levels_.size() >= max_depth_) {
      fault.error = Error::too_deep;
      fault.what = "nested more than " + std::to_string(max_depth_) + " deep";
      return at(read_ != nullptr ? *read_ : 0);
    }
    Json* placed = place(std::move(value));
    levels_.push_back({placed, {}, {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  [[nodiscard]] std::string path() const {
    std::string out;
    for (const Level& level : levels_) {
      if (level.value->is_array()) {
        out += "[" + std::to_string(level.value->empty() ? 0 : level.value->size() - 1) + "]";
      } else {
        if (!out.empty()) out += ".";
        out += level.key;
      }
    }
    return out;
  }

  static std::string quoted(const std::string& token, char c) {
    std::string out = "\"";
    for (const char ch : token.empty() ? std::string(1, c) : token.substr(0, 24))
      out += ch >= ' ' && ch < 127 ? ch : '?';
    return out + "\"";
  }

  [[nodiscard]] std::size_t line_at(std::size_t offset) {
    // Offsets only grow within one parse, so counting goes on from where it stopped.
    for (; counted_ < offset && counted_ < text_.size(); ++counted_) line_ += text_[counted_] == '\n' ? 1u : 0u;
    return line_;
  }

  bool at(std::size_t offset) {
    const std::string_view head = text_.substr(0, std::min(offset, text_.size()));
    fault.line = 1 + static_cast<std::size_t>(std::count(head.begin(), head.end(), '\n'));
    const std::size_t start = head.rfind('\n');
    fault.column = 1 + (start == std::string_view::npos ? head.size() : head.size() - start - 1);
    if (fault.path.empty()) fault.path = path();
    return false;
  }

  std::string_view text_;
  std::size_t max_depth_;
  const std::size_t* read_;
  JsonLines* lines_;
  Json root_;
  std::vector<Level> levels_;
  std::size_t counted_ = 0, line_ = 1;
};

bool run(std::string_view text, JsonLimits limits, bool comments, Json& out, JsonFault& fault, JsonLines* lines) {
  if (text.size() > limits.max_bytes) {
    fault.error = Error::too_large;
    fault.what = "longer than " + std::to_string(limits.max_bytes) + " bytes";
    return false;
  }
  // The library takes a NUL for the end and skips a byte order mark; both are refused here.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos || text.starts_with("\xEF\xBB\xBF")) {
    fault.error = Error::malformed;
    fault.what = nul != std::string_view::npos ? "a NUL byte" : "a byte order mark";
    fault.line = 1 + static_cast<std::size_t>(std::count(
                         text.begin(),
                         text.begin() + static_cast<std::ptrdiff_t>(nul == std::string_view::npos ? 0 : nul), '\n'));
    return false;
  }
  std::size_t read = 0;
  Builder builder(text, limits.max_depth, &read, lines);
  const CountingIterator first{text.data(), &read}, last{text.data() + text.size(), &read};
  if (!Json::sax_parse(first, last, &builder, nlohmann::detail::input_format_t::json, true, comments)) {
    fault = std::move(builder.fault);
    return false;
  }
  out = builder.take();
  return true;
}

}  // namespace

Result<Json> parse_json(std::string_view text, JsonLimits limits) {
  Json out;
  JsonFault fault;
  if (!run(text, limits, false, out, fault, nullptr)) return make_error_code(fault.error);
  return out;
}

bool parse_json_file(std::string_view text, JsonLimits limits, bool comments, Json& out, JsonFault& fault,
                     JsonLines* lines) {
  return run(text, limits, comments, out, fault, lines);
}

}  // namespace tandem
