"""What nodes have left, what pods hold of them, and which nodes a gang takes.

Belongs here: what is counted per node, also of nodes that hold nothing or are still to come.
"""
