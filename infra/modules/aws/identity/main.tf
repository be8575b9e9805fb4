# One role a service, and in each only what that service does, to what it does it to.

locals {
  # arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/ID: topics and groups have the same tail.
  topics = "${replace(var.cluster_arn, ":cluster/", ":topic/")}/*"
  groups = "${replace(var.cluster_arn, ":cluster/", ":group/")}/*"

  services = {
    flow         = "vpc-flow-logs.amazonaws.com"
    spark        = "emr-serverless.amazonaws.com"
    orchestrator = "ecs-tasks.amazonaws.com"
    start        = "ecs-tasks.amazonaws.com"
  }

  policies = {
    flow         = data.aws_iam_policy_document.flow.json
    spark        = data.aws_iam_policy_document.spark.json
    orchestrator = data.aws_iam_policy_document.orchestrator.json
    start        = data.aws_iam_policy_document.start.json
  }
}

data "aws_caller_identity" "me" {}

data "aws_iam_policy_document" "trust" {
  for_each = local.services

  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = [each.value]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [data.aws_caller_identity.me.account_id]
    }
  }
}

resource "aws_iam_role" "this" {
  for_each = local.services

  name               = "${var.name}-${each.key}"
  assume_role_policy = data.aws_iam_policy_document.trust[each.key].json
}

resource "aws_iam_role_policy" "this" {
  for_each = local.policies

  name   = "what-it-does"
  role   = aws_iam_role.this[each.key].id
  policy = each.value
}

data "aws_iam_policy_document" "flow" {
  statement {
    sid       = "WriteFlowLogs"
    actions   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
    resources = [var.log_group_arns.flow, "${var.log_group_arns.flow}:*"]
  }
}

data "aws_iam_policy_document" "spark" {
  statement {
    sid       = "Tables"
    actions   = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
    resources = ["${var.bucket_arn}/*"]
  }

  statement {
    sid       = "FindTables"
    actions   = ["s3:GetBucketLocation", "s3:ListBucket"]
    resources = [var.bucket_arn]
  }

  statement {
    sid       = "OpenWhatIsEncrypted"
    actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
    resources = [var.key_arn]
  }

  statement {
    sid       = "ReachKafka"
    actions   = ["kafka-cluster:Connect", "kafka-cluster:DescribeCluster"]
    resources = [var.cluster_arn]
  }

  statement {
    sid       = "ReadTopics"
    actions   = ["kafka-cluster:DescribeTopic", "kafka-cluster:ReadData"]
    resources = [local.topics]
  }

  statement {
    sid       = "CommitOffsets"
    actions   = ["kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup"]
    resources = [local.groups]
  }

  statement {
    sid       = "LogIn"
    actions   = ["secretsmanager:GetSecretValue"]
    resources = concat([var.control_store_secret_arn], var.kafka_secret_arns)
  }

  statement {
    sid       = "WriteLogs"
    actions   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
    resources = [var.log_group_arns.spark, "${var.log_group_arns.spark}:*"]
  }
}

data "aws_iam_policy_document" "orchestrator" {
  statement {
    sid = "RunJobs"
    actions = [
      "emr-serverless:GetApplication",
      "emr-serverless:ListJobRuns",
      "emr-serverless:StartApplication",
      "emr-serverless:StartJobRun",
    ]
    resources = [var.application_arn]
  }

  statement {
    sid       = "FollowJobs"
    actions   = ["emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"]
    resources = ["${var.application_arn}/jobruns/*"]
  }

  statement {
    sid       = "LendTheSparkRole"
    actions   = ["iam:PassRole"]
    resources = [aws_iam_role.this["spark"].arn]

    condition {
      test     = "StringEquals"
      variable = "iam:PassedToService"
      values   = ["emr-serverless.amazonaws.com"]
    }
  }

  statement {
    sid       = "ReadTables"
    actions   = ["s3:GetObject"]
    resources = ["${var.bucket_arn}/*"]
  }

  statement {
    sid       = "FindTables"
    actions   = ["s3:GetBucketLocation", "s3:ListBucket"]
    resources = [var.bucket_arn]
  }

  statement {
    sid       = "OpenWhatIsEncrypted"
    actions   = ["kms:Decrypt"]
    resources = [var.key_arn]
  }

  statement {
    sid       = "ReachKafka"
    actions   = ["kafka-cluster:Connect", "kafka-cluster:DescribeCluster", "kafka-cluster:WriteDataIdempotently"]
    resources = [var.cluster_arn]
  }

  statement {
    sid = "KeepTopics"
    actions = [
      "kafka-cluster:AlterTopic",
      "kafka-cluster:AlterTopicDynamicConfiguration",
      "kafka-cluster:CreateTopic",
      "kafka-cluster:DescribeTopic",
      "kafka-cluster:DescribeTopicDynamicConfiguration",
      "kafka-cluster:WriteData",
    ]
    resources = [local.topics]
  }

  dynamic "statement" {
    for_each = length(var.kafka_secret_arns) > 0 ? [var.kafka_secret_arns] : []

    content {
      sid       = "LogIn"
      actions   = ["secretsmanager:GetSecretValue"]
      resources = statement.value
    }
  }
}

data "aws_iam_policy_document" "start" {
  statement {
    sid       = "LogInToImages"
    actions   = ["ecr:GetAuthorizationToken"]
    resources = ["*"] # this one action knows no resource
  }

  statement {
    sid       = "FetchImages"
    actions   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    resources = var.repository_arns
  }

  statement {
    sid       = "HandOverThePassword"
    actions   = ["secretsmanager:GetSecretValue"]
    resources = [var.control_store_secret_arn]
  }

  statement {
    sid       = "OpenWhatIsEncrypted"
    actions   = ["kms:Decrypt"]
    resources = [var.key_arn]
  }

  statement {
    sid       = "WriteLogs"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${var.log_group_arns.dagster}:*"]
  }
}
