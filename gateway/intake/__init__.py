"""The only way in: every door hands its submissions to `Intake`, and so does mail that has waited."""
