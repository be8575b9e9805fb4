locals {
  cpu    = "${var.worker_cpu} vCPU"
  memory = "${var.worker_memory_gb} GB"
}

resource "aws_emrserverless_application" "this" {
  name          = var.name
  type          = "spark"
  release_label = var.release
  architecture  = "X86_64"

  dynamic "image_configuration" {
    for_each = var.image == "" ? [] : [var.image]

    content {
      image_uri = image_configuration.value
    }
  }

  initial_capacity {
    initial_capacity_type = "Driver"

    initial_capacity_config {
      worker_count = 1

      worker_configuration {
        cpu    = local.cpu
        memory = local.memory
      }
    }
  }

  initial_capacity {
    initial_capacity_type = "Executor"

    initial_capacity_config {
      worker_count = var.workers

      worker_configuration {
        cpu    = local.cpu
        memory = local.memory
      }
    }
  }

  maximum_capacity {
    cpu    = "${var.worker_cpu * (var.most_workers + 1)} vCPU"
    memory = "${var.worker_memory_gb * (var.most_workers + 1)} GB"
  }

  auto_start_configuration {
    enabled = true
  }

  auto_stop_configuration {
    enabled              = true
    idle_timeout_minutes = var.idle_minutes
  }

  network_configuration {
    subnet_ids         = var.subnet_ids
    security_group_ids = [var.group_id]
  }

  lifecycle {
    precondition {
      condition     = var.most_workers >= var.workers
      error_message = "most_workers must not be below workers."
    }
  }
}
