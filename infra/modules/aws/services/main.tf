data "aws_region" "here" {}

resource "aws_ecr_repository" "this" {
  for_each = var.repositories

  name                 = "${var.name}/${each.key}"
  image_tag_mutability = "IMMUTABLE"

  image_scanning_configuration {
    scan_on_push = true
  }

  encryption_configuration {
    encryption_type = "KMS"
    kms_key         = var.key_arn
  }
}

resource "aws_ecr_lifecycle_policy" "this" {
  for_each = aws_ecr_repository.this

  repository = each.value.name
  policy = jsonencode({
    rules = [{
      rulePriority = 1
      description  = "Keep the last thirty builds"
      selection    = { tagStatus = "any", countType = "imageCountMoreThan", countNumber = 30 }
      action       = { type = "expire" }
    }]
  })
}

# Container Insights would make it itself: under AWS's key, and for a day or for ever.
resource "aws_cloudwatch_log_group" "insights" {
  name              = "/aws/ecs/containerinsights/${var.name}/performance"
  retention_in_days = var.log_days
  kms_key_id        = var.key_arn
}

resource "aws_ecs_cluster" "this" {
  name = var.name

  depends_on = [aws_cloudwatch_log_group.insights]

  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

resource "aws_service_discovery_private_dns_namespace" "this" {
  name = "${var.name}.internal"
  vpc  = var.vpc_id
}

resource "aws_service_discovery_service" "this" {
  for_each = var.services

  name = each.key

  dns_config {
    namespace_id = aws_service_discovery_private_dns_namespace.this.id

    dns_records {
      type = "A"
      ttl  = 10
    }
  }
}

resource "aws_ecs_task_definition" "this" {
  for_each = var.services

  family                   = "${var.name}-${each.key}"
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = each.value.cpu
  memory                   = each.value.memory_mb
  task_role_arn            = each.value.task_role_arn
  execution_role_arn       = each.value.start_role_arn

  # Working files go under /tmp; all else of the image stays as it was built. A task's own volume has the rights that
  # the image gives the folder by its VOLUME, and those of root where it has none.
  volume {
    name = "tmp"
  }

  dynamic "volume" {
    for_each = each.value.home == "" ? [] : [var.home]

    content {
      name = "home"

      efs_volume_configuration {
        file_system_id     = volume.value.file_system_id
        transit_encryption = "ENABLED"

        authorization_config {
          access_point_id = volume.value.access_point_id
          iam             = "ENABLED"
        }
      }
    }
  }

  container_definitions = jsonencode([merge(
    {
      name                   = each.key
      image                  = "${aws_ecr_repository.this[each.value.image].repository_url}:${var.image_tag}"
      command                = each.value.command
      essential              = true
      readonlyRootFilesystem = true
      user                   = "10001:10001"
      environment            = [for name, value in each.value.environment : { name = name, value = value }]
      secrets                = [for name, place in each.value.secrets : { name = name, valueFrom = place }]
      portMappings           = each.value.port == 0 ? [] : [{ containerPort = each.value.port, protocol = "tcp" }]
      mountPoints = concat(
        [{ sourceVolume = "tmp", containerPath = "/tmp" }],
        each.value.home == "" ? [] : [{ sourceVolume = "home", containerPath = each.value.home }],
      )
      linuxParameters = { initProcessEnabled = true }
      stopTimeout     = each.value.stop_seconds
      logConfiguration = {
        logDriver = "awslogs"
        options = {
          awslogs-group         = each.value.log_group
          awslogs-region        = data.aws_region.here.name
          awslogs-stream-prefix = each.key
        }
      }
    },
    each.value.answers_at == "" ? {} : {
      healthCheck = {
        command     = ["CMD", "python", "-m", "penstock.infra.container", "healthy", each.value.answers_at]
        interval    = 30
        timeout     = 10
        retries     = 4
        startPeriod = 120
      }
    },
  )])
}

resource "aws_ecs_service" "this" {
  for_each = var.services

  name                   = each.key
  cluster                = aws_ecs_cluster.this.id
  task_definition        = aws_ecs_task_definition.this[each.key].arn
  desired_count          = var.runs ? 1 : 0
  launch_type            = "FARGATE"
  enable_execute_command = false

  # Two daemons would both launch runs, and two hosts would wait for leases, so the old task stops first.
  deployment_minimum_healthy_percent = 0
  deployment_maximum_percent         = 100

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  network_configuration {
    subnets          = var.subnet_ids
    security_groups  = [each.value.group_id]
    assign_public_ip = false
  }

  service_registries {
    registry_arn = aws_service_discovery_service.this[each.key].arn
  }
}
