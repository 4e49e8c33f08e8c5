#include "tandem/net/http_answer.hpp"

namespace tandem::net {
namespace {

std::string_view phrase(std::uint16_t status) noexcept {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Payload Too Large";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    default: return "Answer";
  }
}

}  // namespace

std::string answer_head(std::uint16_t status, std::string_view type, std::size_t length, std::string_view fields,
                        bool keep_alive) {
  std::string out;
  out.reserve(192 + fields.size());
  out.append("HTTP/1.1 ").append(std::to_string(status)).append(" ").append(phrase(status));
  out.append("\r\nContent-Type: ").append(type);
  out.append("\r\nContent-Length: ").append(std::to_string(length)).append("\r\n");
  out.append(fields);
  if (!keep_alive) out.append("Connection: close\r\n");
  return out.append("\r\n");
}

}  // namespace tandem::net
