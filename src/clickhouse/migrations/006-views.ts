/**
 * Creates the views. A later change of a view is a migration that modifies its query, and a change of `views.ts`. No
 * range may be under way then: ClickHouse counts one twice that is sent before and after a view is modified.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { LIVE_NAMES } from '../tables/names.ts'
import { createViews } from '../tables/views.ts'

export const apply = (client: ClickHouseClient): Promise<void> => createViews(client, LIVE_NAMES)
