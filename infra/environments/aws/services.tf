# The services, their images, settings and secrets. A service gets only its own secrets.

locals {
  tasks = {
    # Streams, Spark within: the driver's cores are the task's own (`host_master` names a cluster instead).
    host = {
      image        = "host"
      command      = ["exec", "python", "-m", "penstock.platform.cli", "host", "run"]
      cpu          = var.host_cpu, memory_mb = var.host_memory_mb
      answers_at   = "http://127.0.0.1:9464/live", stop_seconds = 120, home = local.home
      task_role    = "host", log = "host"
      environment  = merge(local.ours, { PENSTOCK_SPARK__MASTER = var.host_master, PENSTOCK_SPARK__DRIVER_MEMORY = var.host_heap })
      secrets      = local.control_secret
      kafka_users  = ["host"]
      with_dagster = false
    }
    # Dagster's code, and its runs: they are this task's children, and start Spark as the host does.
    code = {
      image        = "host"
      command      = ["exec", "dagster", "code-server", "start", "-h", "0.0.0.0", "-p", "4000", "-m", "penstock.platform.definitions.location", "--location-name", "penstock"]
      cpu          = 2048, memory_mb = 8192, port = 4000, home = local.home
      task_role    = "code", log = "dagster"
      environment  = local.ours
      secrets      = local.control_secret
      kafka_users  = ["host", "ingestion", "topics"]
      with_dagster = true
    }
    webserver = {
      image        = "dagster"
      command      = ["exec", "python", "-m", "penstock.infra.dagster_webserver", "--allow-host", "webserver.${var.name}.internal", "-h", "0.0.0.0", "-p", "3000", "-w", "/opt/penstock/dagster/workspace.yaml"]
      cpu          = 512, memory_mb = 2048, port = 3000
      log          = "dagster"
      environment  = {}
      secrets      = {}
      kafka_users  = []
      with_dagster = true
    }
    daemon = {
      image        = "dagster"
      command      = ["exec", "dagster-daemon", "run", "-w", "/opt/penstock/dagster/workspace.yaml"]
      cpu          = 512, memory_mb = 2048
      log          = "dagster"
      environment  = {}
      secrets      = {}
      kafka_users  = []
      with_dagster = true
    }
  }

  home = "/var/lib/penstock"

  ours = merge(
    {
      PENSTOCK_CONTROL_SECRET   = "env:CONTROL_STORE"
      PENSTOCK_CONTROL_URL      = module.control_store.url
      PENSTOCK_HOME             = local.home
      PENSTOCK_JARS             = "/opt/penstock/jars"
      PENSTOCK_KAFKA__BOOTSTRAP = join(",", module.kafka.brokers)
      PENSTOCK_KAFKA__LAYOUT    = "production"
      PENSTOCK_ROOT             = "/opt/penstock"
      PENSTOCK_WAREHOUSE        = module.warehouse.root
    },
    var.schema_registry == "" ? {} : { PENSTOCK_KAFKA__REGISTRY = var.schema_registry },
    !local.scram ? {} : {
      PENSTOCK_KAFKA__SECURITY__PROTOCOL  = module.kafka.security.protocol
      PENSTOCK_KAFKA__SECURITY__MECHANISM = module.kafka.security.mechanism
    },
  )

  for_dagster = {
    DAGSTER_CODE_HOST             = "code.${var.name}.internal"
    DAGSTER_CODE_PORT             = "4000"
    PENSTOCK_DAGSTER__STORAGE_URL = module.control_store.dagster_url
  }

  control_secret = { CONTROL_STORE = module.secrets.database_secrets["penstock"].arn }

  # Dagster's own clients of PostgreSQL look there for a password that the URL does not have.
  dagster_secret = { PGPASSWORD = "${module.secrets.database_secrets["dagster"].arn}:password::" }

  services = {
    for name, task in local.tasks : name => {
      image          = task.image
      command        = task.command
      cpu            = task.cpu
      memory_mb      = task.memory_mb
      port           = try(task.port, 0)
      answers_at     = try(task.answers_at, "")
      stop_seconds   = try(task.stop_seconds, 30)
      home           = try(task.home, "")
      log_group      = module.logs.groups[task.log].name
      group_id       = module.network.group_ids[name]
      task_role_arn  = try(module.identity.role_arns[task.task_role], null)
      start_role_arn = module.identity.role_arns["start-${name}"]
      environment = merge(
        task.environment,
        task.with_dagster ? local.for_dagster : {},
        { for user in local.logins[name] : "PENSTOCK_KAFKA__SECURITY__SECRETS__${upper(user)}" => "env:KAFKA_${upper(user)}" },
      )
      secrets = merge(
        task.secrets,
        task.with_dagster ? local.dagster_secret : {},
        { for user in local.logins[name] : "KAFKA_${upper(user)}" => module.secrets.kafka_secrets[user].arn },
      )
    }
  }

  logins = { for name, task in local.tasks : name => [for user in local.users : user if contains(task.kafka_users, user)] }

  started = {
    for name, task in local.tasks : name => {
      repository_arn = module.services.repository_arns[task.image]
      log_group_arn  = module.logs.groups[task.log].arn
      secret_arns = concat(
        values(task.secrets),
        task.with_dagster ? [module.secrets.database_secrets["dagster"].arn] : [],
        [for user in local.logins[name] : module.secrets.kafka_secrets[user].arn],
      )
    }
  }
}
