#include "tandem/core/error.hpp"

#include <string>

namespace tandem {
namespace {

// Boost keeps the destructor protected in effect: categories are never deleted through the base.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class Category final : public boost::system::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "tandem"; }
  [[nodiscard]] std::string message(int value) const override {
    return std::string(to_string(static_cast<Error>(value)));
  }
};

#pragma GCC diagnostic pop

}  // namespace

const boost::system::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

boost::system::error_code make_error_code(Error e) noexcept { return {static_cast<int>(e), error_category()}; }

std::string_view to_string(Error e) noexcept {
  switch (e) {
    case Error::malformed: return "malformed";
    case Error::duplicate_key: return "duplicate key";
    case Error::too_deep: return "too deep";
    case Error::too_large: return "too large";
    case Error::missing_field: return "missing field";
    case Error::bad_value: return "bad value";
    case Error::bad_base64: return "bad base64";
    case Error::bad_signature: return "bad signature";
    case Error::bad_authority: return "bad authority";
    case Error::not_found: return "not found";
    case Error::unsupported: return "unsupported";
  }
  return "unknown error";
}

}  // namespace tandem
