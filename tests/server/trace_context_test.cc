// The headers that a trace comes with, and who is traced.
#include "server/observe/tracing/trace_context.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "server/observe/tracing/sampler.h"

namespace kvasir::server::trace_context_test {
namespace {

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";

http::Request with_states(std::initializer_list<std::string> states) {
  http::Request request;
  for (const std::string& state : states) request.headers.push_back({"tracestate", state});
  return request;
}

TEST(TraceContext, IsThatOfAValidHeader) {
  const auto context = observe::parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  ASSERT_TRUE(context);
  EXPECT_EQ(observe::hex(context->trace_id), kTrace);
  EXPECT_EQ(observe::hex(context->span_id), "00f067aa0ba902b7");
  EXPECT_TRUE(context->is_sampled);
  EXPECT_FALSE(
      observe::parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02")->is_sampled);
  EXPECT_TRUE(
      observe::parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-more")->is_sampled);
  for (const char* bad : {"", "00", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                          "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                          "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                          "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                          "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
                          "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                          "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                          "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
                          "00x4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}) {
    EXPECT_FALSE(observe::parse_traceparent(bad)) << bad;
  }
}

TEST(TraceContext, PassesTheStateOnAndDropsAMalformedOne) {
  EXPECT_EQ(observe::trace_state_of(with_states({"congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"})),
            "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7");
  EXPECT_EQ(observe::trace_state_of(with_states({"a=1 , b=2", "", ",c@d=3\t"})), "a=1,b=2,c@d=3");
  EXPECT_EQ(observe::trace_state_of(with_states({})), "");
  std::string many;
  for (int i = 0; i < 33; ++i) many += "k" + std::to_string(i) + "=v,";
  for (const std::string& bad :
       {std::string("a"), std::string("=1"), std::string("A=1"), std::string("_a=1"), std::string("a=1=2"),
        std::string("a="), std::string("a=\x01"), many, "a=" + std::string(257, 'x')}) {
    EXPECT_EQ(observe::trace_state_of(with_states({"ok=1", bad})), "") << bad;
  }
  EXPECT_EQ(observe::trace_state_of(
                with_states({"a=" + std::string(250, 'x'), "b=" + std::string(250, 'x'), "c=12"}))
                .size(),
            510u);
  EXPECT_EQ(observe::trace_state_of(
                with_states({"a=" + std::string(250, 'x'), "b=" + std::string(250, 'x'), "c=123456"})),
            "");
}

TEST(TraceContext, MakesIdsThatDiffer) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    ids.insert(observe::hex(observe::new_trace_id()));
    ids.insert(observe::hex(observe::new_span_id()));
  }
  EXPECT_EQ(ids.size(), 2000u);
  for (const std::string& id : ids) EXPECT_NE(id.find_first_not_of('0'), id.npos);
}

TEST(Sampler, FollowsTheCallerUnlessItsNameSaysOtherwise) {
  const observe::TraceContext sampled{.is_sampled = true}, unsampled{.is_sampled = false};
  const observe::TraceId low{}, high{0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
  struct Case {
    const char* name;
    bool of_new, of_sampled, of_unsampled;  // with a high id and a share of 0.5
  };
  for (const Case& c :
       {Case{"always_on", true, true, true}, Case{"always_off", false, false, false},
        Case{"traceidratio", false, false, false}, Case{"parentbased_always_on", true, true, false},
        Case{"parentbased_always_off", false, true, false},
        Case{"parentbased_traceidratio", false, true, false}}) {
    const auto sampler = observe::Sampler::named(c.name, 0.5);
    ASSERT_TRUE(sampler) << c.name;
    EXPECT_EQ(sampler->samples(high, nullptr), c.of_new) << c.name;
    EXPECT_EQ(sampler->samples(high, &sampled), c.of_sampled) << c.name;
    EXPECT_EQ(sampler->samples(high, &unsampled), c.of_unsampled) << c.name;
  }
  EXPECT_TRUE(observe::Sampler::named("traceidratio", 0.5)->samples(low, nullptr));
  EXPECT_FALSE(observe::Sampler::named("jaeger_remote", 0.5));
  EXPECT_FALSE(observe::Sampler::named("", 0.5));
}

TEST(Sampler, TakesItsShare) {
  for (const double share : {0.0, 0.1, 0.5, 1.0}) {
    const observe::Sampler sampler = observe::Sampler::of_new_traces(share);
    int num_sampled = 0;
    for (int i = 0; i < 10'000; ++i) num_sampled += sampler.samples(observe::new_trace_id(), nullptr);
    EXPECT_NEAR(num_sampled, 10'000 * share, 300.0) << share;  // six standard deviations
  }
}

}  // namespace
}  // namespace kvasir::server::trace_context_test
