data "aws_caller_identity" "me" {}

locals {
  kafka    = { "Cluster Name" = var.name }
  database = { DBInstanceIdentifier = var.name }

  # The alarms: the worst value in five minutes compared with a limit.
  watched = merge(
    {
      kafka-offline-partitions = {
        namespace = "AWS/Kafka", metric = "OfflinePartitionsCount", dimensions = local.kafka
        statistic = "Maximum", comparison = "GreaterThanThreshold", threshold = 0
        meaning   = "Partitions without a leader: nothing can be written to them or read from them"
      }
      kafka-no-single-controller = {
        namespace = "AWS/Kafka", metric = "ActiveControllerCount", dimensions = local.kafka
        statistic = "Maximum", comparison = "LessThanThreshold", threshold = 1
        meaning   = "No broker leads the cluster"
      }
      control-store-disk = {
        namespace = "AWS/RDS", metric = "FreeStorageSpace", dimensions = local.database
        statistic = "Minimum", comparison = "LessThanThreshold", threshold = 2 * 1024 * 1024 * 1024
        meaning   = "Less than 2 GB are left for the control store"
      }
      control-store-cpu = {
        namespace = "AWS/RDS", metric = "CPUUtilization", dimensions = local.database
        statistic = "Average", comparison = "GreaterThanThreshold", threshold = 90
        meaning   = "The control store has been busy for a quarter of an hour"
      }
    },
    # MSK reports disks by broker: the metric needs a broker id.
    { for broker in range(1, var.brokers + 1) : "kafka-disk-${broker}" => {
      namespace  = "AWS/Kafka", metric = "KafkaDataLogsDiskUsed"
      dimensions = merge(local.kafka, { "Broker ID" = tostring(broker) })
      statistic  = "Maximum", comparison = "GreaterThanThreshold", threshold = 80
      meaning    = "The disk of broker ${broker} is more than 80 % full"
    } },
    { for service in var.services : "${service}-down" => {
      namespace  = "ECS/ContainerInsights", metric = "RunningTaskCount"
      dimensions = { ClusterName = var.name, ServiceName = service }
      statistic  = "Minimum", comparison = "LessThanThreshold", threshold = 1
      meaning    = "${service} does not run"
    } }
  )
}

resource "aws_sns_topic" "this" {
  name              = "${var.name}-alarms"
  kms_master_key_id = var.key_arn
}

data "aws_iam_policy_document" "topic" {
  statement {
    sid       = "AlarmsAndBudgetsOfThisAccount"
    actions   = ["sns:Publish"]
    resources = [aws_sns_topic.this.arn]

    principals {
      type        = "Service"
      identifiers = ["budgets.amazonaws.com", "cloudwatch.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [data.aws_caller_identity.me.account_id]
    }
  }
}

resource "aws_sns_topic_policy" "this" {
  arn    = aws_sns_topic.this.arn
  policy = data.aws_iam_policy_document.topic.json
}

resource "aws_sns_topic_subscription" "mail" {
  count = var.mail == "" ? 0 : 1

  topic_arn = aws_sns_topic.this.arn
  protocol  = "email"
  endpoint  = var.mail
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = local.watched

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.meaning
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  comparison_operator = each.value.comparison
  threshold           = each.value.threshold
  period              = 300
  evaluation_periods  = 3
  datapoints_to_alarm = 2
  treat_missing_data  = "breaching"
  alarm_actions       = [aws_sns_topic.this.arn]
  ok_actions          = [aws_sns_topic.this.arn]
}
