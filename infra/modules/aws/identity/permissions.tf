# What each service does, by name, and to what it does it. A permission without resources is left out.

locals {
  # arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/ID: topics and groups have the same tail.
  topics = "${replace(var.cluster_arn, ":cluster/", ":topic/")}/*"
  groups = "${replace(var.cluster_arn, ":cluster/", ":group/")}/*"

  # Clients that authenticate to Kafka with a password have their permissions there.
  by_role = var.kafka_by_role ? [1] : []

  tables = {
    FindTables = { actions = ["s3:GetBucketLocation", "s3:ListBucket"], resources = [var.bucket_arn] }
    Tables = {
      actions   = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
      resources = ["${var.bucket_arn}/*"]
    }
    OpenWhatIsEncrypted = { actions = ["kms:Decrypt", "kms:GenerateDataKey"], resources = [var.key_arn] }
  }

  home = {
    Home = {
      actions    = ["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"]
      resources  = [var.file_system_arn]
      only_where = { variable = "elasticfilesystem:AccessPointArn", is = var.access_point_arn }
    }
  }

  permissions = merge(
    {
      flow = {
        WriteLogs = {
          actions   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
          resources = [var.log_group_arns.flow, "${var.log_group_arns.flow}:*"]
        }
      }

      host = merge(local.tables, local.home)

      spark = merge(local.tables, {
        ReachKafka = {
          actions   = ["kafka-cluster:Connect", "kafka-cluster:DescribeCluster"]
          resources = [for _ in local.by_role : var.cluster_arn]
        }
        ReadTopics = {
          actions   = ["kafka-cluster:DescribeTopic", "kafka-cluster:ReadData"]
          resources = [for _ in local.by_role : local.topics]
        }
        CommitOffsets = {
          actions   = ["kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup"]
          resources = [for _ in local.by_role : local.groups]
        }
        LogIn = { actions = ["secretsmanager:GetSecretValue"], resources = var.spark_secret_arns }
        WriteLogs = {
          actions   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
          resources = [var.log_group_arns.spark, "${var.log_group_arns.spark}:*"]
        }
      })

      # Runs of Dagster's jobs are here: backfills write tables, audits and replays look into streams' homes.
      code = merge(local.tables, local.home, {
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
          actions    = ["iam:PassRole"]
          resources  = [aws_iam_role.this["spark"].arn]
          only_where = { variable = "iam:PassedToService", is = "emr-serverless.amazonaws.com" }
        }
      })
    },
    { for service, needs in var.started : "start-${service}" => {
      LogInToImages = { actions = ["ecr:GetAuthorizationToken"], resources = ["*"] } # it knows no resource
      FetchImage = {
        actions   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
        resources = [needs.repository_arn]
      }
      HandOverPasswords   = { actions = ["secretsmanager:GetSecretValue"], resources = needs.secret_arns }
      OpenWhatIsEncrypted = { actions = ["kms:Decrypt"], resources = [var.key_arn] }
      WriteLogs = {
        actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        resources = ["${needs.log_group_arn}:*"]
      }
    } },
  )
}
