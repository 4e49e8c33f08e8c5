// A real relay (pure half and net) on a thread of its own, for devices to meet: over real TLS, on loopback. Its store
// is a map in memory that lives as long as it does: a new host at the same port is one that has lost its state.
#pragma once

#include "tandem/core/observer.hpp"
#include "tandem/net/server.hpp"
#include "tandem/protocol/attest.hpp"
#include "tandem/relay/relay.hpp"
#include "unit/net/wire.hpp"
#include "unit/protocol/attest_mint.hpp"

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>
#include <openssl/rand.h>

namespace tandem::client {

class RelayHost {
 public:
  struct Options {
    std::string hostname;
    std::uint16_t port = 0;  // 0: any
    bool attest = false;     // demands attestations of the synthetic authority
    bool resolved = false;
  };

  explicit RelayHost(const Options& options) : verifier_(protocol::mint::Authority::synthetic().policy()) {
    net::wire::Options defaults;
    defaults.relay.hostname = options.hostname;
    defaults.relay.resolved = options.resolved;
    defaults.relay.attest_required = defaults.relay.attest_configured = options.attest;
    defaults.relay.app_id = protocol::mint::Authority::synthetic().app_id;
    defaults.relay.drain_delay = milliseconds(200);
    relay_ = std::make_unique<relay::Relay>(defaults.relay, entropy_, recorder_);
    server_ = std::make_unique<net::Server>(loop_, *relay_, recorder_, defaults.net);
    server_->on_effect([this](relay::Effect&& effect) { std::visit([this](auto&& e) { perform(e); }, effect); });
    const net::wire::Pem pem = net::wire::make_certificate();
    const auto certificate = net::Certificate::parse(pem.chain, pem.key);
    const auto context = net::TlsContext::make(std::get<net::Certificate>(certificate),
                                               net::TlsContext::MinVersion::tls12, net::make_ticket_keys());
    server_->set_tls(std::get<std::shared_ptr<const net::TlsContext>>(context));
    const auto bound = server_->listen("127.0.0.1:" + std::to_string(options.port));
    if (bound) port_ = *bound;
    EXPECT_TRUE(bound) << bound.error().message();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~RelayHost() {  // without a word, as kill -9
    loop_.stop();
    thread_.join();
    server_.reset();
  }
  RelayHost(const RelayHost&) = delete;
  RelayHost& operator=(const RelayHost&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] net::wire::Recorder& observed() { return recorder_; }
  void adopt(std::shared_ptr<const shard::ShardMap> map) {
    run([this, &map] { server_->dispatch(relay::event::MapReceived{map}); });
  }
  [[nodiscard]] bool is_established(const RoomName& room) {
    bool established = false;
    run([&] { established = relay_->explain(room, {}).established; });
    return established;
  }

 private:
  class Entropy final : public RandomSource {
    void fill(std::span<std::uint8_t> out) override { RAND_bytes(out.data(), static_cast<int>(out.size())); }
  };

  template <class F>
  void run(F f) {
    std::promise<void> done;
    boost::asio::post(loop_, [&] {
      f();
      done.set_value();
    });
    done.get_future().wait();
  }

  void perform(const relay::effect::LoadRoom& load) {
    const auto found = rooms_.find(load.room);
    server_->dispatch(
        relay::event::RoomLoaded{load.room, found == rooms_.end() ? std::nullopt : std::optional(found->second)});
  }
  void perform(const relay::effect::StoreRoom& store) {
    rooms_[store.room] = store.stored;
    server_->dispatch(relay::event::Stored{store.id, true});
  }
  void perform(const relay::effect::WipeRoom& wipe) {
    rooms_.erase(wipe.room);
    if (wipe.id != 0) server_->dispatch(relay::event::Stored{wipe.id, true});
  }
  void perform(const relay::effect::StoreCounter& store) {
    if (store.id != 0) server_->dispatch(relay::event::Stored{store.id, true});
  }
  void perform(const relay::effect::VerifyAttestation& verify) {
    const auto good = verifier_.verify(verify.object, verify.client_data_hash,
                                       WallTime(std::chrono::sys_days{std::chrono::year{2030} / 1 / 1}));
    EXPECT_TRUE(good);
    if (good)
      server_->dispatch(
          relay::event::AttestationVerified{verify.request, relay::AttestedKey{good->key_id, good->point, 0}, {}});
  }
  template <class Other>
  void perform(const Other&) {}

  net::wire::Recorder recorder_;
  Entropy entropy_;
  protocol::AttestationVerifier verifier_;
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{loop_.get_executor()};
  std::unique_ptr<relay::Relay> relay_;
  std::unique_ptr<net::Server> server_;
  std::map<RoomName, relay::StoredRoom> rooms_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace tandem::client
