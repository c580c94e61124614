"""The policy pack: all policies of soperator_pulumi.policy, at the levels of the stack's environment."""

from soperator_pulumi.policy.pack import serve

serve("soperator-pulumi")
