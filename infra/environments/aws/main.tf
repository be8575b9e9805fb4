data "aws_caller_identity" "me" {}

locals {
  zones  = [for letter in var.zones : "${var.region}${letter}"]
  scram  = var.kafka_authentication == "scram"
  kafka  = local.scram ? 9096 : 9098
  values = var.secrets_filled ? [for secret in module.secrets.kafka_secrets : secret.arn] : []

  # The platform's users. An additional one is for external clients.
  users = [for user in ["host", "ingestion", "topics"] : user if local.scram && contains(var.kafka_principals, user)]

  # Services log in by passwords that are put in by hand, and cannot start before that.
  runs = local.scram && var.secrets_filled
}

module "secrets" {
  source = "../../modules/aws/secrets"

  name             = var.name
  kafka_principals = local.scram ? var.kafka_principals : []
  recovery_days    = var.protected ? 30 : 7
}

module "logs" {
  source = "../../modules/aws/logs"

  name    = var.name
  parts   = ["flow", "kafka", "spark", "dagster", "host"]
  key_arn = module.secrets.key_arn
}

module "network" {
  source = "../../modules/aws/network"

  name               = var.name
  zones              = local.zones
  bucket_arns        = [module.warehouse.bucket_arn]
  flow_log_group_arn = module.logs.groups["flow"].arn
  flow_log_role_arn  = module.identity.role_arns["flow"]

  # Whom each talks to, beside AWS: Kafka, PostgreSQL 5432, the home 2049, Dagster's code 4000. Producers are a team's
  # own programs, keepers its people.
  services = {
    host      = [2049, 5432, local.kafka]
    code      = [2049, 5432, local.kafka]
    webserver = [4000, 5432]
    daemon    = [4000, 5432]
    spark     = [local.kafka]
    producers = [local.kafka]
    keepers   = [3000, 5432, 9098, 11001, 11002]
  }
  listeners = {
    code      = { first = 4000, last = 4000, callers = ["webserver", "daemon"] }
    webserver = { first = 3000, last = 3000, callers = ["keepers"] }
    spark     = { first = 1024, last = 65535, callers = ["spark"] }
  }
}

module "kafka" {
  source = "../../modules/aws/kafka"

  name              = var.name
  vpc_id            = module.network.vpc_id
  subnet_ids        = module.network.subnet_ids
  client_group_ids  = { for service in ["host", "code", "spark", "producers"] : service => module.network.group_ids[service] }
  keeper_group_id   = module.network.group_ids["keepers"]
  key_arn           = module.secrets.key_arn
  brokers           = var.brokers
  instance_type     = var.broker_size
  storage_gb        = var.broker_storage_gb
  authentication    = var.kafka_authentication
  scram_secret_arns = local.values
  log_group         = module.logs.groups["kafka"].name
}

module "warehouse" {
  source = "../../modules/aws/warehouse"

  bucket               = "${var.name}-warehouse-${data.aws_caller_identity.me.account_id}-${var.region}"
  key_arn              = module.secrets.key_arn
  delete_with_contents = !var.protected
}

module "spark" {
  source = "../../modules/aws/spark"

  name         = var.name
  subnet_ids   = module.network.subnet_ids
  group_id     = module.network.group_ids["spark"]
  workers      = var.workers
  most_workers = var.most_workers
}

module "control_store" {
  source = "../../modules/aws/control_store"

  name             = var.name
  vpc_id           = module.network.vpc_id
  subnet_ids       = module.network.subnet_ids
  client_group_ids = { for service in ["host", "code", "webserver", "daemon", "keepers"] : service => module.network.group_ids[service] }
  key_arn          = module.secrets.key_arn
  instance_class   = var.control_store_size
  two_zones        = var.protected
  protected        = var.protected
}

module "home" {
  source = "../../modules/aws/home"

  name             = var.name
  vpc_id           = module.network.vpc_id
  subnet_ids       = module.network.subnet_ids
  client_group_ids = { for service in ["host", "code"] : service => module.network.group_ids[service] }
  role_arns        = [for service in ["host", "code"] : module.identity.role_arns[service]]
  key_arn          = module.secrets.key_arn
}

module "identity" {
  source = "../../modules/aws/identity"

  name              = var.name
  key_arn           = module.secrets.key_arn
  bucket_arn        = module.warehouse.bucket_arn
  cluster_arn       = module.kafka.cluster_arn
  application_arn   = module.spark.application_arn
  file_system_arn   = module.home.file_system_arn
  access_point_arn  = module.home.access_point_arn
  kafka_by_role     = !local.scram
  spark_secret_arns = [for user in local.users : module.secrets.kafka_secrets[user].arn if user == "host"]
  log_group_arns    = { for part in ["flow", "spark"] : part => module.logs.groups[part].arn }
  started           = local.started
}

module "services" {
  source = "../../modules/aws/services"

  name       = var.name
  vpc_id     = module.network.vpc_id
  subnet_ids = module.network.subnet_ids
  key_arn    = module.secrets.key_arn
  image_tag  = var.image_tag
  home       = module.home.place
  runs       = local.runs
  services   = local.services
}

module "alarms" {
  source = "../../modules/aws/alarms"

  name     = var.name
  key_arn  = module.secrets.key_arn
  mail     = var.mail
  services = keys(local.tasks)
  brokers  = var.brokers
}

module "budget" {
  source = "../../modules/aws/budget"

  name        = var.name
  monthly_usd = var.monthly_usd
  topic_arn   = module.alarms.topic_arn
}
