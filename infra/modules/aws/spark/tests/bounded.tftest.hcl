mock_provider "aws" {}

variables {
  name       = "acme"
  subnet_ids = ["subnet-1"]
  group_id   = "sg-1"
}

run "it_stops_by_itself_and_has_a_ceiling" {
  assert {
    condition     = aws_emrserverless_application.this.auto_stop_configuration[0].enabled && aws_emrserverless_application.this.maximum_capacity[0].cpu == "18 vCPU" && aws_emrserverless_application.this.maximum_capacity[0].memory == "72 GB"
    error_message = "It could run, or grow, without end."
  }
}

run "jobs_run_inside_the_network" {
  assert {
    condition     = aws_emrserverless_application.this.network_configuration[0].subnet_ids == toset(["subnet-1"])
    error_message = "Jobs run outside our network."
  }
}

run "a_ceiling_below_the_floor_is_refused" {
  command = plan
  variables {
    workers      = 9
    most_workers = 8
  }
  expect_failures = [aws_emrserverless_application.this]
}
