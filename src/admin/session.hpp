// One connection to the admin listener: reads a request head, answers, reads the next.
#pragma once

#include "answer.hpp"

#include <array>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tandem::admin {

class Session : public std::enable_shared_from_this<Session> {
 public:
  // on_reserve: it was accepted on a spare descriptor, so it serves one request and has little time. ended is called
  // once.
  Session(boost::asio::ip::tcp::socket socket, const AdminSource& source, bool on_reserve,
          std::function<void(Session*)> ended);
  void start();
  void close();  // at once; calls ended

 private:
  void read();
  void received();  // bytes are in pending_
  void respond(Answer answer);
  void linger();  // our answer is out, its reader may still be writing: a reset would eat the answer
  void arm(boost::asio::steady_timer::duration time);

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  const AdminSource& source_;
  bool on_reserve_, closed_ = false;
  std::function<void(Session*)> ended_;
  std::string pending_, out_;
  std::array<char, 4096> buffer_{};
  std::size_t lingered_bytes_ = 0;
};

}  // namespace tandem::admin
