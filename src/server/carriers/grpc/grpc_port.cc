#include "server/carriers/grpc/grpc_port.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <utility>

#include "grpc/health/v1/health.pb.h"
#include "server/carriers/grpc/service.h"
#include "server/http/connection.h"
#include "server/http/listener.h"

namespace kvasir::server::carriers {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// How often a certificate's files are looked at.
constexpr unsigned kTlsSeconds = 1;
// The time that running calls have when all connections close.
constexpr std::chrono::milliseconds kCloseTime{200};

int milliseconds(std::chrono::milliseconds time) {
  return static_cast<int>(std::min<std::int64_t>(time.count(), std::numeric_limits<int>::max()));
}

std::shared_ptr<grpc::ServerCredentials> credentials_of(const GrpcConfig& config) {
  if (config.tls_certificate_file.empty()) return grpc::InsecureServerCredentials();
  using namespace grpc::experimental;
  TlsServerCredentialsOptions options(std::make_shared<FileWatcherCertificateProvider>(
      config.tls_key_file, config.tls_certificate_file, kTlsSeconds));
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return TlsServerCredentials(options);
}

// A connection that gRPC reads and writes. The socket is ours as well, and tells when the connection is over,
// by a shutdown from either side.
struct OpenConnection {
  OpenConnection(tcp::socket socket_in, http::ConnectionCounter::Slot slot_in,
                 const http::SessionContext& context)
      : socket(std::move(socket_in)),
        slot(std::move(slot_in)),
        memory(context.memory),
        metrics(context.metrics) {
    memory.set(connection_bytes(context.limits, false));
    ++metrics.num_connections;
  }
  ~OpenConnection() { --metrics.num_connections; }

  tcp::socket socket;
  http::ConnectionCounter::Slot slot;
  RequestMemory::Share memory;
  observe::ServerMetrics& metrics;
};

}  // namespace

// Accepts connections by itself, so that they count, and hands them to gRPC.
class RunningGrpcPort final : public GrpcPort {
 public:
  RunningGrpcPort(boost::asio::io_context& io, const http::SessionContext& context)
      : context_(context),
        service_(io, context),
        listener_(io, context.connections,
                  [this](auto socket, auto slot) { hand_over(std::move(socket), std::move(slot)); }) {}

  ~RunningGrpcPort() override { shut_down(); }

  Status open(const GrpcConfig& config);

  std::uint16_t port() const override { return listener_.port(); }
  void start() override { listener_.start(); }
  void begin_drain() override { set_serving(false); }
  void shut_down() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + kCloseTime);
  }

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  void set_limits(grpc::ServerBuilder& builder);
  void set_serving(bool is_serving);
  void hand_over(tcp::socket socket, http::ConnectionCounter::Slot slot);

  const http::SessionContext& context_;
  GrpcService service_;
  http::Listener listener_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

Status RunningGrpcPort::open(const GrpcConfig& config) {
  KVASIR_CHECKED(listener_.open(config.host, config.port));
  // Both write of clients' mistakes, in forms of their own.
  gpr_set_log_function([](gpr_log_func_args*) {});
  google::protobuf::SetLogHandler(nullptr);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.RegisterService(&service_);
  set_limits(builder);
  using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(External::FROM_FD, credentials_of(config));
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

void RunningGrpcPort::hand_over(tcp::socket socket, http::ConnectionCounter::Slot slot) {
  error_code error;
  socket.set_option(tcp::no_delay(true), error);
  socket.non_blocking(true, error);
  const int descriptor = fcntl(socket.native_handle(), F_DUPFD_CLOEXEC, 0);
  if (error || descriptor < 0) return;  // it closes; out of descriptors, most likely
  try {
    const auto connection = std::make_shared<OpenConnection>(std::move(socket), std::move(slot), context_);
    // Before gRPC has it: an event that has passed wakes nobody.
    http::wait_until_failed(connection->socket, [connection](const error_code&) {});
  } catch (const std::exception&) {
    close(descriptor);
    throw;
  }
  Acceptor::NewConnectionParameters parameters;
  parameters.listener_fd = -1;
  parameters.fd = descriptor;
  acceptor_->HandleNewConnection(&parameters);
}

Result<std::unique_ptr<GrpcPort>> GrpcPort::open(const GrpcConfig& config, boost::asio::io_context& io,
                                                 const http::SessionContext& context) {
  auto port = std::make_unique<RunningGrpcPort>(io, context);
  KVASIR_CHECKED(port->open(config));
  return port;
}

}  // namespace kvasir::server::carriers
