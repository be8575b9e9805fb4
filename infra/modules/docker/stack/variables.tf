variable "directory" {
  description = "The folder that holds compose.yaml, the Dockerfiles and secrets/."
  type        = string
}

variable "docker" {
  description = "The program that speaks to the engine: docker, or podman, with compose."
  type        = string
}

variable "workers" {
  description = "How many Spark workers."
  type        = number

  validation {
    condition     = var.workers >= 1 && floor(var.workers) == var.workers
    error_message = "At least one worker must run."
  }
}
