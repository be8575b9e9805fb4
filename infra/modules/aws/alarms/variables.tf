variable "name" {
  description = "Prefix of everything's name, and the name of cluster, database and services."
  type        = string
}

variable "key_arn" {
  description = "Key that encrypts the alarms' topic."
  type        = string
}

variable "mail" {
  description = "Who is told; empty tells nobody."
  type        = string
  default     = ""
}

variable "services" {
  description = "Services that must always run."
  type        = set(string)
}

variable "brokers" {
  description = "How many Kafka brokers there are; each has a disk of its own."
  type        = number
}
