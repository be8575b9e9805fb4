mock_provider "aws" {
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:eu-west-1:123456789012:key/1" }
  }
}

variables {
  name             = "acme"
  kafka_principals = ["host", "topics"]
}

run "the_key_changes_by_itself" {
  assert {
    condition     = aws_kms_key.this.enable_key_rotation
    error_message = "The key is never changed."
  }
}

run "the_key_allows_no_wildcards" {
  assert {
    condition = alltrue(flatten([
      for statement in data.aws_iam_policy_document.key.statement : [for action in statement.actions : !strcontains(action, "*")]
    ]))
    error_message = "The key's policy allows actions by a wildcard."
  }
}

run "secrets_are_encrypted_and_named_as_kafka_wants" {
  assert {
    condition = alltrue([
      for secret in aws_secretsmanager_secret.kafka : secret.kms_key_id == aws_kms_key.this.arn && startswith(secret.name, "AmazonMSK_acme_")
    ])
    error_message = "A secret is not under our key, or has a name that Kafka refuses."
  }
}

run "no_recovery_is_refused" {
  command = plan
  variables {
    recovery_days = 0
  }
  expect_failures = [var.recovery_days]
}
