mock_provider "aws" {}

variables {
  name    = "acme"
  parts   = ["kafka", "spark"]
  key_arn = "arn:aws:kms:eu-west-1:123456789012:key/1"
}

run "logs_are_encrypted_and_end" {
  assert {
    condition     = alltrue([for group in aws_cloudwatch_log_group.this : group.kms_key_id == var.key_arn && group.retention_in_days == 30])
    error_message = "A log group is not under our key, or keeps everything for ever."
  }
}
