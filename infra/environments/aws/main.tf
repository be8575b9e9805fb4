data "aws_caller_identity" "me" {}

locals {
  zones  = [for letter in var.zones : "${var.region}${letter}"]
  scram  = var.kafka_authentication == "scram"
  values = var.kafka_secrets_filled ? [for secret in module.secrets.kafka_secrets : secret.arn] : []

  # Dagster keeps topics and brings records in: it logs in as these two, by secrets that its tasks are handed.
  logins = local.scram && var.kafka_secrets_filled ? {
    for user in ["ingestion", "topics"] : user => module.secrets.kafka_secrets[user].arn
    if contains(var.kafka_principals, user)
  } : {}

  registry_settings = var.schema_registry == "" ? {} : { PENSTOCK_KAFKA__REGISTRY = var.schema_registry }

  kafka_settings = local.scram ? merge(
    {
      PENSTOCK_KAFKA__SECURITY__PROTOCOL  = module.kafka.security.protocol
      PENSTOCK_KAFKA__SECURITY__MECHANISM = module.kafka.security.mechanism
    },
    { for user in keys(local.logins) : "PENSTOCK_KAFKA__SECURITY__SECRETS__${upper(user)}" => "env:KAFKA_${upper(user)}" },
  ) : {}

  dagster = {
    webserver = {
      image   = "dagster"
      command = ["exec", "dagster-webserver", "-h", "0.0.0.0", "-p", "3000", "-w", "/opt/penstock/dagster/workspace.yaml"]
      cpu     = 512, memory_mb = 2048, port = 3000
    }
    daemon = {
      image   = "dagster"
      command = ["exec", "dagster-daemon", "run", "-w", "/opt/penstock/dagster/workspace.yaml"]
      cpu     = 512, memory_mb = 2048, port = 0
    }
    code = {
      image   = "dagster"
      command = ["exec", "dagster", "code-server", "start", "-h", "0.0.0.0", "-p", "4000", "-m", "penstock.platform.definitions.location", "--location-name", "penstock"]
      cpu     = 1024, memory_mb = 4096, port = 4000
    }
  }
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
  parts   = ["flow", "kafka", "spark", "dagster"]
  key_arn = module.secrets.key_arn
}

module "network" {
  source = "../../modules/aws/network"

  name               = var.name
  zones              = local.zones
  bucket_arns        = [module.warehouse.bucket_arn]
  flow_log_group_arn = module.logs.groups["flow"].arn
  flow_log_role_arn  = module.identity.role_arns["flow"]
}

module "kafka" {
  source = "../../modules/aws/kafka"

  name              = var.name
  vpc_id            = module.network.vpc_id
  subnet_ids        = module.network.subnet_ids
  client_group_id   = module.network.client_group_id
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

  name            = var.name
  subnet_ids      = module.network.subnet_ids
  client_group_id = module.network.client_group_id
  workers         = var.workers
  most_workers    = var.most_workers
}

module "control_store" {
  source = "../../modules/aws/control_store"

  name            = var.name
  vpc_id          = module.network.vpc_id
  subnet_ids      = module.network.subnet_ids
  client_group_id = module.network.client_group_id
  key_arn         = module.secrets.key_arn
  instance_class  = var.control_store_size
  two_zones       = var.protected
  protected       = var.protected
}

module "identity" {
  source = "../../modules/aws/identity"

  name                     = var.name
  key_arn                  = module.secrets.key_arn
  bucket_arn               = module.warehouse.bucket_arn
  cluster_arn              = module.kafka.cluster_arn
  application_arn          = module.spark.application_arn
  control_store_secret_arn = module.control_store.secret_arn
  kafka_secret_arns        = [for secret in module.secrets.kafka_secrets : secret.arn]
  log_group_arns           = { for part in ["flow", "spark", "dagster"] : part => module.logs.groups[part].arn }
  repository_arns          = module.orchestrator.repository_arns
}

module "orchestrator" {
  source = "../../modules/aws/orchestrator"

  name            = var.name
  vpc_id          = module.network.vpc_id
  subnet_ids      = module.network.subnet_ids
  client_group_id = module.network.client_group_id
  key_arn         = module.secrets.key_arn
  task_role_arn   = module.identity.role_arns["orchestrator"]
  start_role_arn  = module.identity.role_arns["start"]
  log_group       = module.logs.groups["dagster"].name
  image_tag       = var.image_tag
  services        = local.dagster

  environment = merge(local.kafka_settings, local.registry_settings, {
    DAGSTER_CODE_HOST             = "code.${var.name}.internal"
    DAGSTER_CODE_PORT             = "4000"
    PENSTOCK_CONTROL_URL          = module.control_store.url
    PENSTOCK_DAGSTER__STORAGE_URL = module.control_store.dagster_url
    PENSTOCK_HOME                 = "/tmp/penstock"
    PENSTOCK_KAFKA__BOOTSTRAP     = join(",", module.kafka.brokers)
    PENSTOCK_KAFKA__LAYOUT        = "production"
    PENSTOCK_ROOT                 = "/opt/penstock"
    PENSTOCK_WAREHOUSE            = module.warehouse.root
  })

  # PostgreSQL's clients look there for a password that the URL does not have; Kafka's where the settings say.
  secrets = merge(
    { PGPASSWORD = "${module.control_store.secret_arn}:password::" },
    { for user, arn in local.logins : "KAFKA_${upper(user)}" => arn },
  )
}

module "alarms" {
  source = "../../modules/aws/alarms"

  name     = var.name
  key_arn  = module.secrets.key_arn
  mail     = var.mail
  services = keys(local.dagster)
}

module "budget" {
  source = "../../modules/aws/budget"

  name        = var.name
  monthly_usd = var.monthly_usd
  topic_arn   = module.alarms.topic_arn
}
