#include "tandem/app/map_gunzip.hpp"

#include <boost/beast/zlib/inflate_stream.hpp>

namespace tandem::app {

namespace {

// The size of the header of RFC 1952; nothing where there is none.
std::optional<std::size_t> header_size(std::string_view data) {
  const auto byte = [&](std::size_t i) { return i < data.size() ? static_cast<unsigned char>(data[i]) : 0u; };
  if (data.size() < 18 || byte(0) != 0x1f || byte(1) != 0x8b || byte(2) != 8) return {};
  const unsigned flags = byte(3);
  std::size_t at = 10;
  if (flags & 4u) at += 2 + byte(at) + 256 * byte(at + 1);
  for (const unsigned text : {8u, 16u}) {
    if (!(flags & text)) continue;
    at = data.find('\0', std::min(at, data.size()));
    if (at == std::string_view::npos) return {};
    ++at;
  }
  if (flags & 2u) at += 2;
  return at < data.size() ? std::optional(at) : std::nullopt;
}

}  // namespace

std::optional<std::string> gunzip(std::string_view data, std::size_t max_bytes) {
  namespace zlib = boost::beast::zlib;
  const auto start = header_size(data);
  if (!start) return {};
  std::string out(max_bytes + 1, '\0');
  zlib::inflate_stream inflater;
  zlib::z_params z;
  z.next_in = data.data() + *start;
  z.avail_in = data.size() - *start;
  z.next_out = out.data();
  z.avail_out = out.size();
  boost::system::error_code ec;
  inflater.write(z, zlib::Flush::finish, ec);
  if (ec != zlib::error::end_of_stream || z.total_out > max_bytes) return {};
  out.resize(z.total_out);
  return out;
}

}  // namespace tandem::app
