// Stands in for grpc_port.cc in a build without gRPC.
#include "server/carriers/grpc/grpc_port.h"

namespace kvasir::server::carriers {

Result<std::unique_ptr<GrpcPort>> GrpcPort::open(const GrpcConfig&, boost::asio::io_context&,
                                                 const http::SessionContext&) {
  return make_error(ErrorKind::kUsage, "--grpc-port: this build has no gRPC (cmake -DKVASIR_GRPC=ON)",
                    "grpc-port");
}

}  // namespace kvasir::server::carriers
