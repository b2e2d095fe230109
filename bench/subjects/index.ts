import { uwsClient, uwsUndici } from './bare.ts'
import { direct } from './direct.ts'
import { litellm } from './litellm.ts'
import { nginx } from './nginx.ts'
import { portkey } from './portkey.ts'
import type { Subject } from './subject.ts'
import { tollgate, tollgateNoSettlement, tollgateStoredFirst } from './tollgate.ts'

/** Subjects that take part only where `--with` or `--only` names them: they take long to install and to measure. */
export const ON_REQUEST: readonly string[] = [litellm.name]

/**
 * All subjects, in the order of the tables and of a round. Subjects that are compared follow each other, because other
 * work on the machine comes and goes within seconds.
 */
export const subjects: Subject[] = [
  direct,
  litellm,
  portkey,
  uwsUndici,
  uwsClient,
  nginx,
  tollgate,
  tollgateNoSettlement,
  tollgateStoredFirst,
]
