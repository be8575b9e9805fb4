variable "name" {
  description = "Prefix of everything's name."
  type        = string
}

variable "vpc_id" {
  description = "The network that the database lives in."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets, in at least two zones."
  type        = list(string)
}

variable "client_group_ids" {
  description = "Clients to the security group whose members may talk to the database."
  type        = map(string)
}

variable "authority_file" {
  description = "File, where the clients run, with the certificates of RDS's own authority."
  type        = string
  default     = "/opt/penstock/certificates/rds.pem"
}

variable "log_days" {
  description = "How long the database's log is kept."
  type        = number
  default     = 30
}

variable "key_arn" {
  description = "Key that encrypts the database, its backups and its password."
  type        = string
}

variable "instance_class" {
  description = "Size of the database."
  type        = string
  default     = "db.t4g.medium"
}

variable "storage_gb" {
  description = "Disk at the start, in GB; it grows to four times that by itself."
  type        = number
  default     = 20
}

variable "two_zones" {
  description = "Whether a standby instance runs in another zone."
  type        = bool
  default     = true
}

variable "protected" {
  description = "Whether it refuses to be destroyed, and leaves a snapshot when it is."
  type        = bool
  default     = true
}
