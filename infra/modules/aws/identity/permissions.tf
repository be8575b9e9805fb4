# What each service does, by name, and to what it does it. A permission without resources is left out.

locals {
  # arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/ID: topics and groups have the same tail.
  topics = "${replace(var.cluster_arn, ":cluster/", ":topic/")}/*"
  groups = "${replace(var.cluster_arn, ":cluster/", ":group/")}/*"

  find_tables = { actions = ["s3:GetBucketLocation", "s3:ListBucket"], resources = [var.bucket_arn] }
  decrypt     = { actions = ["kms:Decrypt"], resources = [var.key_arn] }

  permissions = {
    flow = {
      WriteLogs = {
        actions   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
        resources = [var.log_group_arns.flow, "${var.log_group_arns.flow}:*"]
      }
    }

    spark = {
      FindTables = local.find_tables
      Tables = {
        actions   = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
        resources = ["${var.bucket_arn}/*"]
      }
      OpenWhatIsEncrypted = {
        actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
        resources = [var.key_arn]
      }
      ReachKafka = {
        actions   = ["kafka-cluster:Connect", "kafka-cluster:DescribeCluster"]
        resources = [var.cluster_arn]
      }
      ReadTopics = {
        actions   = ["kafka-cluster:DescribeTopic", "kafka-cluster:ReadData"]
        resources = [local.topics]
      }
      CommitOffsets = {
        actions   = ["kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup"]
        resources = [local.groups]
      }
      LogIn = {
        actions   = ["secretsmanager:GetSecretValue"]
        resources = concat([var.control_store_secret_arn], var.kafka_secret_arns)
      }
      WriteLogs = {
        actions   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
        resources = [var.log_group_arns.spark, "${var.log_group_arns.spark}:*"]
      }
    }

    orchestrator = {
      FindTables          = local.find_tables
      OpenWhatIsEncrypted = local.decrypt
      ReadTables          = { actions = ["s3:GetObject"], resources = ["${var.bucket_arn}/*"] }
      RunJobs = {
        actions = [
          "emr-serverless:GetApplication",
          "emr-serverless:ListJobRuns",
          "emr-serverless:StartApplication",
          "emr-serverless:StartJobRun",
        ]
        resources = [var.application_arn]
      }
      FollowJobs = {
        actions   = ["emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"]
        resources = ["${var.application_arn}/jobruns/*"]
      }
      LendTheSparkRole = {
        actions   = ["iam:PassRole"]
        resources = [aws_iam_role.this["spark"].arn]
        passed_to = "emr-serverless.amazonaws.com"
      }
      ReachKafka = {
        actions   = ["kafka-cluster:Connect", "kafka-cluster:DescribeCluster", "kafka-cluster:WriteDataIdempotently"]
        resources = [var.cluster_arn]
      }
      KeepTopics = {
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
    }

    start = {
      OpenWhatIsEncrypted = local.decrypt
      LogInToImages       = { actions = ["ecr:GetAuthorizationToken"], resources = ["*"] } # it knows no resource
      FetchImages = {
        actions   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
        resources = var.repository_arns
      }
      HandOverPasswords = {
        actions   = ["secretsmanager:GetSecretValue"]
        resources = concat([var.control_store_secret_arn], var.kafka_secret_arns)
      }
      WriteLogs = {
        actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        resources = ["${var.log_group_arns.dagster}:*"]
      }
    }
  }
}
