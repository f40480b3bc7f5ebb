def destroy_process_group(group=None):
    pass
