// Reads one HTTP/1.x answer from bytes as they arrive and judges it: its status, its framing, its coding, its size.
#pragma once

#include "tandem/net/http_fetch.hpp"

namespace tandem::net {

class ReplyReader {
 public:
  // conditional: If-None-Match was sent, so that a 304 is an answer.
  ReplyReader(const FetchRequest& request, bool conditional);
  ~ReplyReader();

  // Nothing: more bytes are needed. Bytes behind the answer are ignored.
  [[nodiscard]] std::optional<FetchResult> feed(std::string_view bytes);
  // The stream ended. clean: with the transport's own goodbye, so that a body without a length may be believed whole.
  [[nodiscard]] FetchResult end(bool clean);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::net
