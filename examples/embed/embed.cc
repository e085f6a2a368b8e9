// Continues a text with a model, inside this process: embed MODEL.gguf TEXT
#include <kvasir/engine.h>

#include <cstdio>
#include <future>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: embed MODEL.gguf TEXT\n", stderr);
    return 2;
  }
  const auto engine = kvasir::Engine::load({.model_path = argv[1]});
  if (!engine) {
    std::fprintf(stderr, "embed: %s\n", engine.error().message.c_str());
    return 3;
  }
  const auto prompt = (*engine)->encode(argv[2]);
  if (!prompt) {
    std::fprintf(stderr, "embed: %s\n", prompt.error().message.c_str());
    return 3;
  }

  kvasir::Request request;
  request.prompt_token_ids = *prompt;
  request.sampling.temperature = 0.0f;
  request.sampling.max_tokens = 32;
  std::promise<void> finished;
  const auto id = (*engine)->submit(request, [&finished](const kvasir::RequestOutput& output) {
    std::fputs(output.text.c_str(), stdout);
    if (output.request_finished) finished.set_value();
  });
  if (!id) {
    std::fprintf(stderr, "embed: %s\n", id.error().message.c_str());
    return 4;
  }
  finished.get_future().wait();
  std::puts("");
}
