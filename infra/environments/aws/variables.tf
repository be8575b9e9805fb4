variable "name" {
  description = "The environment's name, and the prefix of all names in it."
  type        = string
  default     = "penstock"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,20}$", var.name))
    error_message = "Use 3 to 21 small letters, digits and hyphens, beginning with a letter."
  }
}

variable "region" {
  description = "Where it is built."
  type        = string
  default     = "eu-west-1"
}

variable "max_retries" {
  description = "How often a call to AWS is tried again."
  type        = number
  default     = 25
}

variable "zones" {
  description = "Letters of the region's zones that are used."
  type        = list(string)
  default     = ["a", "b", "c"]
}

variable "brokers" {
  description = "How many Kafka brokers: a multiple of the number of zones."
  type        = number
  default     = 3
}

variable "broker_size" {
  description = "Size of a Kafka broker."
  type        = string
  default     = "kafka.m7g.large"
}

variable "broker_storage_gb" {
  description = "Disk of a Kafka broker, in GB."
  type        = number
  default     = 200
}

variable "kafka_authentication" {
  description = "How clients prove who they are: scram (every client of Kafka can) or iam (no passwords)."
  type        = string
  default     = "scram"
}

variable "kafka_principals" {
  description = "Kafka's users when clients log in by SCRAM."
  type        = set(string)
  default     = ["ingestion", "host", "topics"]
}

variable "kafka_secrets_filled" {
  description = "Whether the users' secrets have values; only then can they be given to Kafka (see ../README.md)."
  type        = bool
  default     = false
}

variable "schema_registry" {
  description = "Address of a Confluent-compatible schema registry; where none is named each task has one of its own, which goes with it."
  type        = string
  default     = ""
}

variable "workers" {
  description = "Spark executors that are kept warm."
  type        = number
  default     = 2
}

variable "most_workers" {
  description = "Spark executors at most."
  type        = number
  default     = 8
}

variable "control_store_size" {
  description = "Size of the control store's database."
  type        = string
  default     = "db.t4g.medium"
}

variable "protected" {
  description = "Whether data survives: the database refuses to be destroyed, the bucket is kept while it holds anything."
  type        = bool
  default     = true
}

variable "image_tag" {
  description = "Which build of our images runs."
  type        = string
}

variable "monthly_usd" {
  description = "What a month may cost, in US dollars, before somebody is told."
  type        = number
  default     = 2000
}

variable "mail" {
  description = "Who is told of alarms and of the budget; empty tells nobody."
  type        = string
  default     = ""
}
