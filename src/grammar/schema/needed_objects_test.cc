#include "grammar/schema/needed_objects.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "grammar/regex/derivatives.h"
#include "grammar/regex/term_store.h"
#include "grammar/schema/json_value.h"

namespace kvasir::grammar::needed_objects_test {
namespace {

class NeededObjects : public testing::Test {
 protected:
  std::vector<ObjectCell> needed(const std::vector<ObjectCell>& cells, bool closes_objects = false) {
    return needed_objects(evaluator_, cells, closes_objects);
  }
  ObjectCell with_member(SchemaName value) const {
    return {.rules = {MemberRule{.properties = {{"a", value}}, .patterns = {}}}, .required = {"a"}};
  }

  TermStore store_;
  Derivatives derivatives_{store_};
  std::unique_ptr<const JsonValue> root_ = *read_json("{}");
  SchemaEvaluator evaluator_{*root_, store_, derivatives_};
};

TEST_F(NeededObjects, ACaseWithinAnotherIsLeftOut) {
  const ObjectCell with_a = {.required = {"a"}};
  const ObjectCell with_both = {.required = {"a", "b"}};
  const ObjectCell few = {.required = {"a"}, .max_members = 3};
  EXPECT_EQ(needed({with_both, with_a, few}), std::vector{with_a});
  EXPECT_EQ(needed({with_a, {.required = {"b"}}}).size(), 2U);
}

// {"a": .., "b": ..} is no text of objects that name b alone: they have a behind it.
TEST_F(NeededObjects, ACaseOfAnotherOrderStays) {
  const ObjectCell with_b = {.required = {"b"}};
  EXPECT_EQ(needed({with_b, {.required = {"a", "b"}}}).size(), 2U);
  EXPECT_EQ(needed({with_b, {.required = {"b", "a"}}}), std::vector{with_b});
  // A key that may not be there is nowhere.
  EXPECT_EQ(needed({with_b, {.required = {"b"}, .absent = {"a"}}}), std::vector{with_b});
}

TEST_F(NeededObjects, ACaseWithoutAValueIsLeftOut) {
  EXPECT_EQ(needed({with_member(kNoValue), with_member(kAnyValue)}), std::vector{with_member(kAnyValue)});
}

TEST_F(NeededObjects, AMemberThatHasToBeThereMeetsAConditionOfSomeMember) {
  const ObjectCell with_a = {.required = {"a"}};
  ObjectCell with_some = with_a;
  with_some.contains = {{.keys = store_.literals({"a", "b"})}};
  EXPECT_EQ(needed({with_some, with_a}), std::vector{with_a});
  with_some.contains = {{.keys = store_.literals({"b", "c"})}};
  EXPECT_EQ(needed({with_some, {.required = {"z"}}})[0], with_some);
}

// Keys that a closed case does not name are in none of its texts.
TEST_F(NeededObjects, AClosedCaseHoldsNoOtherKeys) {
  const ObjectCell with_a = with_member(kAnyValue);
  ObjectCell with_both = with_a;
  with_both.required = {"a", "b"};
  EXPECT_EQ(needed({with_a, with_both}, /*closes_objects=*/false), std::vector{with_a});
  EXPECT_EQ(needed({with_a, with_both}, /*closes_objects=*/true).size(), 2U);
}

}  // namespace
}  // namespace kvasir::grammar::needed_objects_test
