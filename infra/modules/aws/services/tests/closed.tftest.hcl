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
  name            = "acme"
  vpc_id          = "vpc-1"
  subnet_ids      = ["subnet-1", "subnet-2"]
  client_group_id = "sg-1"
  key_arn         = "arn:aws:kms:eu-west-1:123456789012:key/1"
  task_role_arn   = "arn:aws:iam::123456789012:role/acme-orchestrator"
  start_role_arn  = "arn:aws:iam::123456789012:role/acme-start"
  log_group       = "/acme/dagster"
  image_tag       = "1"
  secrets         = { PASSWORD = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:rds:password::" }
  services = {
    webserver = { image = "dagster", command = ["dagster-webserver"], cpu = 512, memory_mb = 1024, port = 3000 }
    daemon    = { image = "dagster", command = ["dagster-daemon", "run"], cpu = 512, memory_mb = 1024, port = 0 }
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

run "a_secret_is_handed_over_by_its_name" {
  assert {
    condition = alltrue([
      for task in aws_ecs_task_definition.this :
      alltrue([for container in jsondecode(task.container_definitions) : container.secrets == [{ name = "PASSWORD", valueFrom = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:rds:password::" }]])
    ])
    error_message = "A secret is not a reference."
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
