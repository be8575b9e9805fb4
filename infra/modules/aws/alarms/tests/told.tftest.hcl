mock_provider "aws" {
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
  mock_resource "aws_sns_topic" {
    defaults = { arn = "arn:aws:sns:eu-west-1:123456789012:acme-alarms" }
  }
}

variables {
  name     = "acme"
  key_arn  = "arn:aws:kms:eu-west-1:123456789012:key/1"
  services = ["daemon"]
  brokers  = 3
}

run "every_alarm_is_told_to_somebody" {
  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.this : contains(alarm.alarm_actions, "arn:aws:sns:eu-west-1:123456789012:acme-alarms")])
    error_message = "An alarm is told to nobody."
  }

  assert {
    condition     = contains(keys(aws_cloudwatch_metric_alarm.this), "daemon-down")
    error_message = "Nobody would notice that a service is down."
  }
}

run "each_brokers_disk_is_watched_by_the_dimensions_that_msk_tells" {
  assert {
    condition = {
      for name, alarm in aws_cloudwatch_metric_alarm.this : name => alarm.dimensions if alarm.metric_name == "KafkaDataLogsDiskUsed"
      } == {
      for broker in ["1", "2", "3"] : "kafka-disk-${broker}" => tomap({ "Cluster Name" = "acme", "Broker ID" = broker })
    }
    error_message = "A broker's disk could fill up without anybody being told."
  }
}

run "silence_is_an_alarm" {
  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.this : alarm.treat_missing_data == "breaching"])
    error_message = "What tells nothing any more would look well."
  }
}

run "the_topic_is_encrypted_and_its_policy_names_actions" {
  assert {
    condition     = aws_sns_topic.this.kms_master_key_id == var.key_arn
    error_message = "The topic is not under our key."
  }

  assert {
    condition     = alltrue(flatten([for statement in data.aws_iam_policy_document.topic.statement : [for action in statement.actions : !strcontains(action, "*")]]))
    error_message = "The topic's policy allows actions by a wildcard."
  }
}
