mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { name = "eu-west-1" }
  }
  mock_resource "aws_service_discovery_service" {
    defaults = { arn = "arn:aws:servicediscovery:eu-west-1:123456789012:service/srv-1" }
  }
  mock_resource "aws_ecs_cluster" {
    defaults = { id = "arn:aws:ecs:eu-west-1:123456789012:cluster/acme" }
  }
  mock_resource "aws_ecs_task_definition" {
    defaults = { arn = "arn:aws:ecs:eu-west-1:123456789012:task-definition/acme:1" }
  }
  mock_resource "aws_ecr_repository" {
    defaults = { repository_url = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/acme/dagster" }
  }
}

variables {
  name       = "acme"
  vpc_id     = "vpc-1"
  subnet_ids = ["subnet-1", "subnet-2"]
  key_arn    = "arn:aws:kms:eu-west-1:123456789012:key/1"
  image_tag  = "1"
  home       = { file_system_id = "fs-1", access_point_id = "fsap-1" }
  services = {
    host = {
      image          = "host", command = ["host"], cpu = 1024, memory_mb = 4096
      home           = "/var/lib/penstock", answers_at = "http://127.0.0.1:9464/live", stop_seconds = 120
      log_group      = "/acme/host", group_id = "sg-host"
      task_role_arn  = "arn:aws:iam::123456789012:role/acme-host"
      start_role_arn = "arn:aws:iam::123456789012:role/acme-start-host"
      environment    = {}
      secrets        = { KAFKA_HOST = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:AmazonMSK_acme_host" }
    }
    daemon = {
      image          = "dagster", command = ["dagster-daemon", "run"], cpu = 512, memory_mb = 1024
      log_group      = "/acme/dagster", group_id = "sg-daemon"
      start_role_arn = "arn:aws:iam::123456789012:role/acme-start-daemon"
      environment    = {}
      secrets        = { PGPASSWORD = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:database:password::" }
    }
  }
}

run "no_service_has_a_public_address" {
  assert {
    condition     = alltrue([for service in aws_ecs_service.this : !service.network_configuration[0].assign_public_ip])
    error_message = "A service can be reached from outside."
  }
}

run "containers_are_not_root_and_cannot_write_to_themselves" {
  assert {
    condition = alltrue([
      for task in aws_ecs_task_definition.this :
      alltrue([for container in jsondecode(task.container_definitions) : container.readonlyRootFilesystem && container.user == "10001:10001"])
    ])
    error_message = "A container is root, or can change its own image."
  }
}

run "a_service_is_handed_its_own_secrets_by_their_names" {
  assert {
    condition = {
      for name, task in aws_ecs_task_definition.this : name => jsondecode(task.container_definitions)[0].secrets
      } == {
      for name, service in var.services : name => [for what, place in service.secrets : { name = what, valueFrom = place }]
    }
    error_message = "A secret is not a reference, or is another service's."
  }
}

run "each_has_its_own_roles_and_group" {
  assert {
    condition     = aws_ecs_task_definition.this["host"].task_role_arn == "arn:aws:iam::123456789012:role/acme-host" && aws_ecs_task_definition.this["daemon"].task_role_arn == null && aws_ecs_task_definition.this["daemon"].execution_role_arn == "arn:aws:iam::123456789012:role/acme-start-daemon"
    error_message = "A service has another's role."
  }

  assert {
    condition     = { for name, service in aws_ecs_service.this : name => tolist(service.network_configuration[0].security_groups) } == { host = tolist(["sg-host"]), daemon = tolist(["sg-daemon"]) }
    error_message = "A service wears another's group."
  }
}

run "the_home_is_mounted_over_tls_by_its_door_and_only_where_it_is_wanted" {
  assert {
    condition = alltrue([
      for volume in aws_ecs_task_definition.this["host"].volume :
      volume.name == "tmp" || (volume.efs_volume_configuration[0].transit_encryption == "ENABLED" && volume.efs_volume_configuration[0].authorization_config[0].iam == "ENABLED" && volume.efs_volume_configuration[0].authorization_config[0].access_point_id == "fsap-1")
    ]) && length(aws_ecs_task_definition.this["host"].volume) == 2
    error_message = "The home is mounted in plain text, or around its door."
  }

  assert {
    condition     = [for volume in aws_ecs_task_definition.this["daemon"].volume : volume.name] == ["tmp"]
    error_message = "A service mounts the home that has no business there."
  }
}

run "nothing_is_started_while_secrets_are_empty" {
  variables {
    runs = false
  }
  assert {
    condition     = alltrue([for service in aws_ecs_service.this : service.desired_count == 0])
    error_message = "A task would fail to start for want of its secrets."
  }
}

run "figures_of_containers_are_encrypted_and_end" {
  assert {
    condition     = aws_cloudwatch_log_group.insights.name == "/aws/ecs/containerinsights/acme/performance" && aws_cloudwatch_log_group.insights.kms_key_id == var.key_arn && aws_cloudwatch_log_group.insights.retention_in_days == 30
    error_message = "AWS would make the log group itself."
  }
}

run "images_are_encrypted_and_never_change_under_a_tag" {
  assert {
    condition = alltrue([
      for repository in aws_ecr_repository.this :
      repository.image_tag_mutability == "IMMUTABLE" && repository.encryption_configuration[0].kms_key == var.key_arn && repository.image_scanning_configuration[0].scan_on_push
    ])
    error_message = "A repository is not closed."
  }
}

run "there_are_never_two_daemons" {
  assert {
    condition     = alltrue([for service in aws_ecs_service.this : service.desired_count == 1 && service.deployment_maximum_percent == 100])
    error_message = "Two of a service could run at once."
  }
}
