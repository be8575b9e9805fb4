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

variable "kafka_by_role" {
  description = "Whether clients log in to Kafka by their role; otherwise they do by a password."
  type        = bool
}

variable "spark_secret_arns" {
  description = "Secrets that Spark jobs read, such as the password of the Kafka user that reads topics."
  type        = list(string)
  default     = []
}

variable "log_group_arns" {
  description = "Log groups of the parts flow and spark."
  type        = object({ flow = string, spark = string })
}

variable "file_system_arn" {
  description = "The file system that the platform's home is on."
  type        = string
}

variable "access_point_arn" {
  description = "The door by which the home is mounted."
  type        = string
}

variable "started" {
  description = "Services that are started as tasks: where their image, their secrets and their logs are."
  type        = map(object({ repository_arn = string, secret_arns = list(string), log_group_arn = string }))
}
