#include "server/observe/request_log.h"

#include <gtest/gtest.h>

namespace kvasir::server::request_log_test {
namespace {

using observe::AccessRecord;
using observe::GenerationRecord;
using observe::request_line;

AccessRecord posted(int status) {
  AccessRecord record;
  record.method = "POST";
  record.path = "/v1/chat/completions";
  record.status = status;
  record.total_ms = 1234.0;
  return record;
}

TEST(RequestLog, SaysWhoAnsweredHowMuchAndHowSoon) {
  AccessRecord record = posted(200);
  record.tenant = "ann";
  record.generation = GenerationRecord();
  record.generation->model = "smollm2:135m";
  record.generation->usage.prompt_tokens = 31;
  record.generation->usage.cached_tokens = 16;
  record.generation->usage.completion_tokens = 8;
  record.generation->first_token_ms = 45.2;
  EXPECT_EQ(request_line(record),
            "POST /v1/chat/completions 200  smollm2:135m  31 tokens (16 cached) + 8, first after 45 ms, 1.2 s, key ann");
}

TEST(RequestLog, NamesHowItEnded) {
  AccessRecord record = posted(0);
  record.abort_cause = "client_closed";
  EXPECT_EQ(request_line(record), "POST /v1/chat/completions no answer, 1.2 s, client_closed");
  EXPECT_EQ(request_line(posted(400)), "POST /v1/chat/completions 400, 1.2 s");
}

TEST(RequestLog, LeavesOutWhatNobodyLooksFor) {
  AccessRecord record = posted(200);
  record.method = "GET";
  EXPECT_EQ(request_line(record), "");
  record.status = 404;
  EXPECT_NE(request_line(record), "");
  EXPECT_EQ(request_line(posted(503)), "");
  EXPECT_EQ(request_line(posted(429)), "");
}

TEST(RequestLog, KeepsForeignTextOnOneLine) {
  AccessRecord record = posted(404);
  record.path = "/a\nb";
  EXPECT_EQ(request_line(record).find('\n'), std::string::npos);
}

}  // namespace
}  // namespace kvasir::server::request_log_test
