// Accepts connections on one listening socket. Keeps some descriptors back for the rest of the program (the admin
// pages, the map, the store): when they run short it stops accepting, without spinning, and goes on when there are some
// again.
#pragma once

#include "net/transport.hpp"
#include "tandem/core/time.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>
#include <boost/system/result.hpp>

namespace tandem::net {

class Loop;

class Listener {
 public:
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

  [[nodiscard]] static boost::system::result<std::unique_ptr<Listener>> open(Loop& loop, std::string_view address);
  [[nodiscard]] static boost::system::result<std::unique_ptr<Listener>> adopt(Loop& loop, int descriptor);

  void start();
  void stop();
  void try_again();  // called when a descriptor came free, and now and then: goes on if it was paused and may
  void tell();       // once a second: reports that accepting has gone on without a pause since
  [[nodiscard]] bool paused() const noexcept { return state_->paused; }
  [[nodiscard]] std::uint16_t port() const;

 private:
  struct State {  // outlives the listener inside Asio's handler
    State(Loop& l, Acceptor a) : loop(l), acceptor(std::move(a)) {}
    Loop& loop;
    Acceptor acceptor;
    bool open = true, paused = false, armed = false, told = false;
  };
  explicit Listener(std::shared_ptr<State> state) : state_(std::move(state)) {}
  static void arm(const std::shared_ptr<State>& state);
  static void on_ready(const std::shared_ptr<State>& state);
  static void pause(State& state);

  std::shared_ptr<State> state_;
};

}  // namespace tandem::net
