mock_provider "aws" {
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
}

variables {
  name              = "acme"
  key_arn           = "arn:aws:kms:eu-west-1:123456789012:key/1"
  bucket_arn        = "arn:aws:s3:::acme"
  cluster_arn       = "arn:aws:kafka:eu-west-1:123456789012:cluster/acme/1"
  application_arn   = "arn:aws:emr-serverless:eu-west-1:123456789012:/applications/1"
  file_system_arn   = "arn:aws:elasticfilesystem:eu-west-1:123456789012:file-system/fs-1"
  access_point_arn  = "arn:aws:elasticfilesystem:eu-west-1:123456789012:access-point/fsap-1"
  kafka_by_role     = false
  spark_secret_arns = ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:AmazonMSK_acme_host"]
  log_group_arns = {
    flow  = "arn:aws:logs:eu-west-1:123456789012:log-group:/acme/flow"
    spark = "arn:aws:logs:eu-west-1:123456789012:log-group:/acme/spark"
  }
  started = {
    host = {
      repository_arn = "arn:aws:ecr:eu-west-1:123456789012:repository/acme/host"
      secret_arns    = ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:AmazonMSK_acme_host"]
      log_group_arn  = "arn:aws:logs:eu-west-1:123456789012:log-group:/acme/host"
    }
    daemon = {
      repository_arn = "arn:aws:ecr:eu-west-1:123456789012:repository/acme/dagster"
      secret_arns    = ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:acme/database/dagster"]
      log_group_arn  = "arn:aws:logs:eu-west-1:123456789012:log-group:/acme/dagster"
    }
  }
}

run "no_action_is_a_wildcard" {
  assert {
    condition = alltrue(flatten([
      for document in data.aws_iam_policy_document.does :
      [for statement in document.statement : [for action in statement.actions : !strcontains(action, "*")]]
    ]))
    error_message = "A policy allows actions by a wildcard."
  }
}

run "only_the_one_action_without_resources_is_allowed_on_all" {
  assert {
    condition = toset(flatten([
      for document in data.aws_iam_policy_document.does :
      [for statement in document.statement : [for action in statement.actions : action] if contains(statement.resources, "*")]
    ])) == toset(["ecr:GetAuthorizationToken"])
    error_message = "Something is allowed on every resource."
  }
}

run "only_the_service_itself_takes_a_role_and_only_from_this_account" {
  assert {
    condition = alltrue([
      for document in data.aws_iam_policy_document.trust :
      length(document.statement[0].condition) == 1 && alltrue([for principal in document.statement[0].principals : principal.type == "Service"])
    ])
    error_message = "Others can take a role."
  }
}

run "whoever_logs_in_by_a_password_has_no_way_in_by_role" {
  assert {
    condition = !anytrue(flatten([
      for document in data.aws_iam_policy_document.does :
      [for statement in document.statement : [for action in statement.actions : startswith(action, "kafka-cluster:")]]
    ]))
    error_message = "Kafka's own permissions could be gone around."
  }
}

run "spark_reads_topics_by_role_and_cannot_change_them" {
  variables {
    kafka_by_role     = true
    spark_secret_arns = []
  }

  assert {
    condition = toset(flatten([
      for statement in data.aws_iam_policy_document.does["spark"].statement :
      [for action in statement.actions : action if startswith(action, "kafka-cluster:")]
      ])) == toset([
      "kafka-cluster:Connect", "kafka-cluster:DescribeCluster", "kafka-cluster:DescribeTopic",
      "kafka-cluster:ReadData", "kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup",
    ])
    error_message = "Spark jobs may do more than read topics and commit offsets."
  }
}

run "each_service_may_do_something_and_says_to_what" {
  assert {
    condition     = { for service, document in data.aws_iam_policy_document.does : service => length(document.statement) } == { flow = 1, host = 4, code = 7, spark = 5, start-host = 5, start-daemon = 5 }
    error_message = "A service has more or fewer permissions than were counted."
  }
}

run "the_spark_role_is_lent_to_spark_alone" {
  assert {
    condition     = flatten([for statement in data.aws_iam_policy_document.does["code"].statement : [for condition in statement.condition : condition.values] if contains(statement.actions, "iam:PassRole")]) == ["emr-serverless.amazonaws.com"]
    error_message = "Dagster's code can lend Spark's role to others."
  }
}

run "the_home_is_entered_by_its_door_alone" {
  assert {
    condition = alltrue(flatten([
      for document in data.aws_iam_policy_document.does :
      [for statement in document.statement : [for condition in statement.condition : condition.values == tolist([var.access_point_arn])] if contains(statement.actions, "elasticfilesystem:ClientMount")]
    ]))
    error_message = "A service could mount what lies around the home."
  }
}

run "a_start_hands_over_its_own_secrets_and_no_running_service_of_ours_reads_any" {
  assert {
    condition = jsonencode({
      for service, document in data.aws_iam_policy_document.does : service => flatten([for statement in document.statement : tolist(statement.resources) if contains(statement.actions, "secretsmanager:GetSecretValue")])
      if anytrue([for statement in document.statement : contains(statement.actions, "secretsmanager:GetSecretValue")])
      }) == jsonencode({
      spark        = var.spark_secret_arns
      start-daemon = var.started.daemon.secret_arns
      start-host   = var.started.host.secret_arns
    })
    error_message = "Somebody can read a secret that is not his."
  }
}
