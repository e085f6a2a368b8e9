#include "base/progress_reporter.h"

#include <gtest/gtest.h>

#include <memory>

namespace kvasir::progress_reporter_test {
namespace {

// The text that a reporter writes to its stream.
class Screen {
 public:
  explicit Screen(bool is_terminal) {
    config_.stream = stream_.get();
    config_.is_terminal = is_terminal;
    config_.redraw_interval = config_.line_interval = std::chrono::milliseconds(0);
  }
  ProgressReporter::Config& config() { return config_; }

  std::string text() const {
    std::string out(static_cast<std::size_t>(std::ftell(stream_.get())), '\0');
    std::rewind(stream_.get());
    EXPECT_EQ(std::fread(out.data(), 1, out.size(), stream_.get()), out.size());
    return out;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream_{std::tmpfile(), std::fclose};
  ProgressReporter::Config config_;
};

TEST(ProgressReporter, WritesWholeLinesWhenTheStreamIsNoTerminal) {
  Screen screen(false);
  ProgressReporter reporter(screen.config());
  reporter.report_bytes("downloading", 512, 1024);
  reporter.report_fraction("packing", 1.0);
  reporter.note("done");
  EXPECT_EQ(screen.text(), "downloading   50%  512 B of 1.00 KiB\npacking      100%\ndone\n");
}

TEST(ProgressReporter, SaysNothingBeforeTheIntervalIsOver) {
  Screen screen(false);
  screen.config().line_interval = std::chrono::hours(1);
  ProgressReporter reporter(screen.config());
  reporter.report_bytes("downloading", 512, 1024);
  EXPECT_EQ(screen.text(), "");
}

TEST(ProgressReporter, RedrawsOneBarInPlaceAndTakesItAway) {
  Screen screen(true);
  {
    ProgressReporter reporter(screen.config());
    reporter.report_fraction("packing", 0.5);
    reporter.report_fraction("packing", 1.0);
  }
  const std::string text = screen.text();
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("\rpacking     [############............]  50%"), std::string::npos) << text;
  EXPECT_NE(text.find("\rpacking     [########################] 100%"), std::string::npos) << text;
  EXPECT_EQ(text.back(), '\r');
}

TEST(ProgressReporter, IsSilentWhenQuiet) {
  Screen screen(true);
  screen.config().quiet = true;
  ProgressReporter reporter(screen.config());
  reporter.report_bytes("downloading", 1, 2);
  reporter.note("done");
  EXPECT_EQ(screen.text(), "");
}

}  // namespace
}  // namespace kvasir::progress_reporter_test
