variable "name" {
  description = "Prefix of everything's name."
  type        = string
}

variable "key_arn" {
  description = "The customer's key that data and secrets are encrypted with."
  type        = string
}

variable "bucket_arn" {
  description = "The warehouse's bucket."
  type        = string
}

variable "cluster_arn" {
  description = "The Kafka cluster."
  type        = string
}

variable "application_arn" {
  description = "The Spark application."
  type        = string
}

variable "control_store_secret_arn" {
  description = "The secret with the control store's user and password."
  type        = string
}

variable "kafka_secret_arns" {
  description = "Secrets of Kafka's users; empty when clients log in by role."
  type        = list(string)
  default     = []
}

variable "log_group_arns" {
  description = "Log groups of the parts flow, spark and dagster."
  type        = object({ flow = string, spark = string, dagster = string })
}

variable "repository_arns" {
  description = "Image repositories that services are started from."
  type        = list(string)
}
