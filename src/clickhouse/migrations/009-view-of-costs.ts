/** Creates the view that fills the costs by day. The calls from before have no cost, so that none is to be filled in. */
import type { ClickHouseClient } from '@clickhouse/client'
import { LIVE_NAMES } from '../tables/names.ts'
import { createViewOfCosts } from '../tables/views.ts'

export const apply = (client: ClickHouseClient): Promise<void> => createViewOfCosts(client, LIVE_NAMES)
