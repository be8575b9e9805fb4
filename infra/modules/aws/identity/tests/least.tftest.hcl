mock_provider "aws" {
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
}

variables {
  name                     = "acme"
  key_arn                  = "arn:aws:kms:eu-west-1:123456789012:key/1"
  bucket_arn               = "arn:aws:s3:::acme"
  cluster_arn              = "arn:aws:kafka:eu-west-1:123456789012:cluster/acme/1"
  application_arn          = "arn:aws:emr-serverless:eu-west-1:123456789012:/applications/1"
  control_store_secret_arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:rds"
  kafka_secret_arns        = ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:AmazonMSK_acme_host"]
  repository_arns          = ["arn:aws:ecr:eu-west-1:123456789012:repository/acme/dagster"]
  log_group_arns = {
    flow    = "arn:aws:logs:eu-west-1:123456789012:log-group:/acme/flow"
    spark   = "arn:aws:logs:eu-west-1:123456789012:log-group:/acme/spark"
    dagster = "arn:aws:logs:eu-west-1:123456789012:log-group:/acme/dagster"
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
    condition = flatten([
      for document in data.aws_iam_policy_document.does :
      [for statement in document.statement : [for action in statement.actions : action] if contains(statement.resources, "*")]
    ]) == ["ecr:GetAuthorizationToken"]
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

run "spark_cannot_change_topics" {
  assert {
    condition = !anytrue(flatten([
      for statement in data.aws_iam_policy_document.does["spark"].statement :
      [for action in statement.actions : startswith(action, "kafka-cluster:Create") || startswith(action, "kafka-cluster:AlterTopic") || startswith(action, "kafka-cluster:Write")]
    ]))
    error_message = "Spark jobs may do more than read topics and commit offsets."
  }
}

run "each_service_may_do_something_and_says_to_what" {
  assert {
    condition     = { for service, document in data.aws_iam_policy_document.does : service => length(document.statement) } == { flow = 1, spark = 8, orchestrator = 8, start = 5 }
    error_message = "A service has more or fewer permissions than were counted."
  }
}

run "the_spark_role_is_lent_to_spark_alone" {
  assert {
    condition     = flatten([for statement in data.aws_iam_policy_document.does["orchestrator"].statement : [for condition in statement.condition : condition.values] if contains(statement.actions, "iam:PassRole")]) == ["emr-serverless.amazonaws.com"]
    error_message = "The orchestrator can lend Spark's role to others."
  }
}

run "our_code_in_dagster_reads_no_secret_itself" {
  assert {
    condition     = !anytrue([for statement in data.aws_iam_policy_document.does["orchestrator"].statement : contains(statement.actions, "secretsmanager:GetSecretValue")])
    error_message = "Dagster's tasks are handed their secrets when they start, and need to read none."
  }
}

run "only_secrets_that_have_a_name_are_handed_over" {
  variables {
    kafka_secret_arns = []
  }

  assert {
    condition     = flatten([for statement in data.aws_iam_policy_document.does["start"].statement : tolist(statement.resources) if statement.sid == "HandOverPasswords"]) == ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:rds"]
    error_message = "More than the control store's password is handed over."
  }
}
