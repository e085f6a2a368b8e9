#include "server/carriers/grpc/grpc_port.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/address_space.h"
#include "base/units.h"
#include "grpc/health/v1/health.pb.h"
#include "server/carriers/grpc/relay.h"
#include "server/carriers/grpc/service.h"
#include "server/http/listener.h"
#include "server/http/tls.h"

namespace kvasir::server::carriers {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// The time that running calls have when all connections close.
constexpr std::chrono::milliseconds kCloseTime{200};
// gRPC ends the program where an allocation fails. It starts some threads with stacks of 8 MiB each, and more of them
// while calls run.
constexpr std::int64_t kStartBytes = 128 << 20, kConnectionBytes = 32 << 20;

int milliseconds(std::chrono::milliseconds time) {
  return static_cast<int>(std::min<std::int64_t>(time.count(), std::numeric_limits<int>::max()));
}

// gRPC's end of a pair of sockets, and ours; a small buffer, so that a slow reader is soon felt. Empty: out of
// descriptors, most likely.
std::optional<std::pair<int, int>> socket_pair() {
  constexpr int kBufferBytes = 32 << 10;
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) return std::nullopt;
  for (const int end : ends) setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof kBufferBytes);
  return std::pair(ends[0], ends[1]);
}

}  // namespace

// Accepts connections by itself, so that they count, and gives gRPC what comes through a relay.
class RunningGrpcPort final : public GrpcPort {
 public:
  RunningGrpcPort(boost::asio::io_context& io, const http::SessionContext& context)
      : io_(io),
        context_(context),
        service_(io, context),
        listener_(io, context.connections,
                  [this](auto socket, auto slot) { hand_over(std::move(socket), std::move(slot)); }) {}

  ~RunningGrpcPort() override { shut_down(); }

  Status open(const GrpcConfig& config);

  std::uint16_t port() const override { return listener_.port(); }
  void start() override { listener_.start(); }
  void begin_drain() override { set_serving(false); }
  void shut_down() override;

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  void set_limits(grpc::ServerBuilder& builder);
  void set_serving(bool is_serving);
  void hand_over(tcp::socket socket, http::ConnectionCounter::Slot slot);

  boost::asio::io_context& io_;
  const http::SessionContext& context_;
  GrpcService service_;
  std::unique_ptr<http::Tls> tls_;  // null: none
  const std::shared_ptr<RelayShare> relays_ = std::make_shared<RelayShare>();
  http::Listener listener_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

Status RunningGrpcPort::open(const GrpcConfig& config) {
  if (const auto bytes = free_address_bytes(); bytes && *bytes < kStartBytes) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("--grpc-port: gRPC needs {} of addresses to start, ulimit -v leaves {}",
                                  format_bytes(kStartBytes), format_bytes(*bytes)),
                      "grpc-port");
  }
  KVASIR_CHECKED(listener_.open(config.host, config.port));
  if (!config.tls_certificate_file.empty()) {
    KVASIR_TRY(tls_, http::Tls::open(config.tls_certificate_file, config.tls_key_file, config.warn,
                                     http::Tls::Protocol::kHttp2));
  }
  // Both write of clients' mistakes, in forms of their own.
  gpr_set_log_function([](gpr_log_func_args*) {});
  google::protobuf::SetLogHandler(nullptr);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.RegisterService(&service_);
  set_limits(builder);
  using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(External::FROM_FD, grpc::InsecureServerCredentials());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr)
    return make_error(ErrorKind::kMachine, "--grpc-port: gRPC does not start", "grpc-port");
  grpc::health::v1::HealthCheckRequest::descriptor();  // linked, so that reflection knows it
  set_serving(true);
  return {};
}

// The whole server, and the service by its name.
void RunningGrpcPort::set_serving(bool is_serving) {
  grpc::HealthCheckServiceInterface& health = *server_->GetHealthCheckService();
  health.SetServingStatus(is_serving);
  health.SetServingStatus(std::string(v1::Kvasir::service_full_name()), is_serving);
}

void RunningGrpcPort::set_limits(grpc::ServerBuilder& builder) {
  const Limits& limits = context_.limits;
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.body_bytes.max));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(limits.header_bytes.max));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(limits.channel_requests.max));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, milliseconds(limits.header_timeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, milliseconds(limits.idle_timeout));
  // A client that answers no ping is gone.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(limits.idle_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(limits.header_timeout));
  const std::int64_t limit_bytes = context_.memory.limit_bytes();
  if (limit_bytes == 0) return;
  context_.memory.set_aside(grpc_bytes(limit_bytes));
  grpc::ResourceQuota quota("kvasir");
  quota.Resize(static_cast<std::size_t>(grpc_bytes(limit_bytes)));
  builder.SetResourceQuota(quota);
}

void RunningGrpcPort::shut_down() {
  if (server_ == nullptr) return;
  const auto end = std::chrono::steady_clock::now() + 2 * kCloseTime;
  server_->Shutdown(std::chrono::system_clock::now() + kCloseTime);
  // The last of gRPC's bytes leave.
  while (relays_->num_open > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void RunningGrpcPort::hand_over(tcp::socket socket, http::ConnectionCounter::Slot slot) {
  if (const auto bytes = free_address_bytes(); bytes && *bytes < kConnectionBytes) return;  // which closes it
  const auto ends = socket_pair();
  if (!ends) return;
  std::shared_ptr<Relay> relay;
  try {
    Relay::Inner inner(socket.get_executor());
    inner.assign(boost::asio::local::stream_protocol(), ends->first);
    relay = std::make_shared<Relay>(std::move(socket), std::move(slot), std::move(inner),
                                    tls_ == nullptr ? nullptr : &tls_->context(), context_, relays_);
    boost::asio::dispatch(relay->executor(), [relay] { relay->start(); });
  } catch (const std::exception&) {
    close(ends->second);
    throw;
  }
  Acceptor::NewConnectionParameters parameters;
  parameters.listener_fd = -1;
  parameters.fd = ends->second;
  acceptor_->HandleNewConnection(&parameters);
}

Result<std::unique_ptr<GrpcPort>> GrpcPort::open(const GrpcConfig& config, boost::asio::io_context& io,
                                                 const http::SessionContext& context) {
  auto port = std::make_unique<RunningGrpcPort>(io, context);
  KVASIR_CHECKED(port->open(config));
  return port;
}

}  // namespace kvasir::server::carriers
