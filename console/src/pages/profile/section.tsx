/** The frame of the parts of the page, and the data that they share. */

import type { ReactNode } from 'react'
import type { OperationPath } from '../../../../schemas/routes.ts'
import type { AnswerOf } from '../../api/client.ts'
import { Panel } from '../../ui/states.tsx'

export type Security = AnswerOf<'showSecurity'>

/** Where it is read. */
export const SECURITY: OperationPath = '/me/security'

/** A part of the page: what it is about, and its controls. */
export const Section = ({
  title,
  note,
  children,
}: {
  readonly title: string
  readonly note?: string
  readonly children: ReactNode
}) => (
  <Panel title={title}>
    <div className="flex flex-col gap-4 p-4">
      {note && <p className="max-w-prose text-quiet">{note}</p>}
      {children}
    </div>
  </Panel>
)
