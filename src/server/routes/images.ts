/** Routes below `/v1/images`. */
import { deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import { editImages, imageTasks, makeImages } from '../../../pipelines/media/images/images.ts'
import { MAX_FORM_BYTES } from '../../../pipelines/media/inputs/read-form.ts'
import type { CallGroups } from '../gateway/call-groups.ts'
import { type RoutedPath, routed } from './routed.ts'

export function imageRoutes(groups: CallGroups): readonly RoutedPath[] {
  const { access, orders, mediaTasks, images: store, files } = groups
  const images = imageTasks(access, mediaTasks, files)
  return [
    routed('/v1/images/generations', { POST: makeImages(orders, store), GET: images.list }),
    routed('/v1/images/generations/{id}', { GET: images.show, DELETE: images.cancel }),
    routed('/v1/images/generations/{id}/files', { DELETE: deleteFiles(access, groups, 'image') }),
    routed('/v1/images/edits', { POST: editImages(orders, store) }, { maxFormBytes: MAX_FORM_BYTES }),
  ]
}
