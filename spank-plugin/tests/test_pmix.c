#include "../pmix.h"
#include "harness.h"

static struct failure failure;

TEST(a_step_of_one_component_may_have_pmix)
{
    CHECK(pmix_check(NULL, 1, &failure) == 0);
    CHECK(pmix_check("(vector,(0,1,4))", 1, &failure) == 0);
    CHECK(pmix_check("(vector,(0,2,2),(2,1,1))", 3, &failure) == 0);
    CHECK(pmix_check("(vector,(0,2,1),(0,2,1))", 2, &failure) == 0);
}

TEST(a_step_over_nodes_of_other_components_is_refused)
{
    CHECK(pmix_check("(vector,(0,2,1))", 1, &failure) == -1 && failure.scope == FAILURE_JOB);
    CHECK(pmix_check("(vector,(0,1,2),(1,1,1))", 1, &failure) == -1);
    CHECK_SAYS(failure.text, "Start all tasks as one component");
}
