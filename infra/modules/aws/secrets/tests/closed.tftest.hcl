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

run "users_of_the_database_have_secrets_of_their_own" {
  assert {
    condition     = { for user, secret in aws_secretsmanager_secret.database : user => [secret.name, secret.kms_key_id == aws_kms_key.this.arn] } == { dagster = ["acme/database/dagster", true], penstock = ["acme/database/penstock", true] }
    error_message = "A user of the database has no secret, or it is not under our key."
  }
}

run "log_groups_that_aws_writes_to_may_use_the_key" {
  assert {
    condition = flatten([
      for statement in data.aws_iam_policy_document.key.statement : [for condition in statement.condition : [for value in condition.values : element(split(":log-group:", value), 1)]] if statement.sid == "LogsOfThisEnvironment"
    ]) == ["/acme/*", "/aws/rds/instance/acme/*", "/aws/ecs/containerinsights/acme/*"]
    error_message = "A log group could not be encrypted, or another environment's could be."
  }
}

run "no_recovery_is_refused" {
  command = plan
  variables {
    recovery_days = 0
  }
  expect_failures = [var.recovery_days]
}
