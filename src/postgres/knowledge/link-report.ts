/** Reports faults of a base's links to its author after an import. */
import type { Sql } from '../connection.ts'
import type { LinkReport, SameTitle, UnresolvedLink } from './types.ts'

/** Of the pages with one title. */
const MAX_PATHS = 3

export async function reportLinks(sql: Sql, baseId: string, limit: number): Promise<LinkReport> {
  const unresolved = await sql<(UnresolvedLink & { total: bigint })[]>`
    SELECT p.path, p.links[l.position] AS link, count(*) OVER () AS total
    FROM wiki_links AS l JOIN wiki_pages AS p ON p.id = l.page_id
    WHERE l.base_id = ${baseId}
      AND NOT EXISTS (SELECT FROM wiki_names AS n WHERE n.base_id = l.base_id AND n.name = l.name)
    ORDER BY p.path COLLATE "C", l.position LIMIT ${limit}`
  const sameTitle = await sql<(SameTitle & { total: bigint })[]>`
    SELECT (array_agg(p.title ORDER BY p.path COLLATE "C"))[1] AS title,
      (array_agg(p.path ORDER BY p.path COLLATE "C"))[:${MAX_PATHS}::integer] AS paths, count(*) OVER () AS total
    FROM wiki_names AS n JOIN wiki_pages AS p ON p.id = n.page_id
    WHERE n.base_id = ${baseId} AND n.rank = 0
    GROUP BY n.name HAVING count(*) > 1
    ORDER BY n.name COLLATE "C" LIMIT ${limit}`
  return {
    unresolved: {
      count: Number(unresolved[0]?.total ?? 0),
      first: unresolved.map(({ path, link }) => ({ path, link })),
    },
    sameTitle: {
      count: Number(sameTitle[0]?.total ?? 0),
      first: sameTitle.map(({ title, paths }) => ({ title, paths })),
    },
  }
}
